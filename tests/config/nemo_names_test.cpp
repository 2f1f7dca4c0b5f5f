// Names and forms of NeMo-RL's, of any version, that mean something here.
#include "core/config/typed/run_config_read.hpp"
#include "tests/config/support.hpp"

using namespace config_test;
using hexad::config::duration_seconds;

TEST_CASE("an SGLang server knows whether requests run while weights are updated") {
  const std::string at = "policy.generation.sglang_cfg.sglang_server_config.";
  const auto in_flight = [&](const Overrides& more) {
    Overrides all = {"++policy.generation.backend=sglang"};
    all.insert(all.end(), more.begin(), more.end());
    return resolve_text(all).root.as_bool(at + "in_flight_weight_updates");
  };
  CHECK(!in_flight({}));
  CHECK(in_flight({"++grpo.async_grpo.in_flight_weight_updates=true"}));
  CHECK(!in_flight({"++grpo.async_grpo.in_flight_weight_updates=true", "++" + at + "in_flight_weight_updates=false"}));
}

TEST_CASE("a section that does not train is replaced in silence") {
  const std::string key = "policy.megatron_cfg.moe_token_dispatcher_type";
  const auto asleep = resolve_text({"++" + key + "=flex"});
  CHECK(asleep.root.as_string(key) == "alltoall");
  CHECK(!has_notice(asleep, key, ""));
}

TEST_CASE("_override_ below a top-level section is told of") {
  const auto resolved = resolve_text({"++policy.megatron_cfg={_override_: true, enabled: false}"});
  CHECK(has_notice(resolved, "policy.megatron_cfg._override_", "read in a top-level section alone"));
}

TEST_CASE("a time after the start: four numbers of any size") {
  CHECK(duration_seconds("00:03:45:00") == 13500);
  CHECK(duration_seconds("00:47:35:00") == 171300);
  CHECK(duration_seconds("1:0:99:100") == 92440);
  CHECK(duration_seconds("0:0:0:171300") == 171300);
  CHECK(duration_seconds("999999999:0:0:0") == 999999999 * 86400.0);
  for (const char* wrong : {"", "1:2:3", "1:2:3:4:5", "-1:0:0:0", "0:+1:0:0", "0:0:0:x", "0::0:0", "0:0:0:1.5",
                            "0:0:0:1000000000", "0:0:0:99999999999999999999"}) {
    CHECK_MESSAGE(!duration_seconds(wrong), wrong);
    check_says(resolve_error({fmt::format("++checkpointing.checkpoint_must_save_by='{}'", wrong)}),
               fmt::format("checkpointing.checkpoint_must_save_by: got '{}', wanted \"DD:HH:MM:SS\"", wrong));
  }
  CHECK(resolve_error({"++checkpointing.checkpoint_must_save_by='00:47:35:00'"}) == "");
}
