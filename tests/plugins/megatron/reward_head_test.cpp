// megatron has no reward head, and says so.
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/backend/temporary_dir.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;

TEST_CASE("a reward model is refused") {
  const TemporaryDir dir;
  write_model(dir.path(), megatron_model("llama"));
  json config = megatron_policy(dir.path(), json::object());
  config["reward_model_cfg"] = {{"enabled", true}};
  Instance backend((one_rank(), config));
  CHECK(backend.code() == HEXAD_UNIMPLEMENTED);
  CHECK(backend.error() ==
        "policy.reward_model_cfg.enabled is true: megatron has no reward head; wanted policy.backend: dtensor");
}
