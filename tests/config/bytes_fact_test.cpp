// What a rank that trains holds, as manifests say it, and what `hexad config check` prints of it.
#include <cmath>
#include <sstream>

#include "app/config/commands.hpp"
#include "tests/config/support.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace config_test;
using hexad::config::BytesFact;
using plugin_test::Json;

namespace {

// Llama-3.1-8B: 8,030,261,248 parameters.
constexpr double kParameters = 8'030'261'248;
const std::string kLlama =
    R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336})";

std::optional<BytesFact> bytes_of(const Overrides& overrides, const std::string& model = kLlama) {
  const Files files({{"a.yaml", kValid}, {"m/config.json", model}});
  Overrides all = {"++policy.model_name=" + (files / "m").string(), "++cluster.gpus_per_node=8"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return hexad::config::load_with_defaults(files / "a.yaml", all).facts.bytes;
}

void check_bytes(const std::optional<BytesFact>& bytes, double parameters, double gradients, double optimizer) {
  REQUIRE(bytes);
  const auto near = [](int64_t is, double wanted) {
    CHECK_MESSAGE(std::abs(static_cast<double>(is) / kParameters - wanted) <= 1e-3 * wanted,
                  "got " << static_cast<double>(is) / kParameters << ", wanted " << wanted);
  };
  near(bytes->parameters, parameters);
  near(bytes->gradients, gradients);
  near(bytes->optimizer, optimizer);
}

std::string said_of(const std::optional<BytesFact>& bytes, bool json, bool valid = true) {
  std::vector<hexad::config::Problem> problems;
  if (!valid) problems.push_back({hexad::config::Problem::Severity::error, {}, "k", "is wrong"});
  std::ostringstream out;
  hexad::config::print_problems(problems, "run.yaml", json, out, bytes);
  return out.str();
}

}  // namespace

TEST_CASE("bytes of a parameter that a rank of dtensor holds") {
  check_bytes(bytes_of({}), 6.0 / 8, 4.0 / 8, 8.0 / 8);
  check_bytes(bytes_of({"++policy.precision=float32"}), 4.0 / 8, 4.0 / 8, 8.0 / 8);
  check_bytes(bytes_of({"++policy.dtensor_cfg.dp_replicate_size=2"}), 6.0 / 4, 4.0 / 4, 8.0 / 4);
  check_bytes(bytes_of({"++policy.dtensor_cfg.reshard_after_forward=false"}), 6.0 / 8 + 2, 4.0 / 8, 8.0 / 8);
  check_bytes(bytes_of({"++policy.dtensor_cfg.defer_fsdp_grad_sync=true"}), 6.0 / 8, 4.0 / 8 + 4, 8.0 / 8);
  check_bytes(bytes_of({"++cluster.gpus_per_node=1"}), 6, 4, 8);
  check_bytes(bytes_of({"++policy.optimizer.name=torch.optim.SGD"}), 6.0 / 8, 4.0 / 8, 0);
  // In the memory of a GPU there are no shards then; the host's is another one.
  const Overrides offload = {"++policy.dtensor_cfg.cpu_offload=true"};
  check_bytes(bytes_of(offload), 0, 0, 0);
  CHECK(bytes_of({offload[0], "++cluster.device=cpu"})->optimizer > 0);
}

TEST_CASE("bytes of a parameter that a rank of megatron holds") {
  const auto megatron = [](Overrides keys) {
    for (std::string& key : keys) key = "++policy.megatron_cfg." + key;
    keys.push_back("++policy.megatron_cfg.enabled=true");
    keys.push_back("++policy.dtensor_cfg.enabled=false");
    return bytes_of(keys);
  };
  const std::string ddp = "distributed_data_parallel_config.";
  check_bytes(megatron({}), 2 + 2.0 / 8, 2 + 4.0 / 8, 8.0 / 8);
  check_bytes(megatron({ddp + "grad_reduce_in_fp32=true"}), 2 + 2.0 / 8, 4, 8.0 / 8);
  check_bytes(megatron({"optimizer.use_precision_aware_optimizer=false"}), 2 + 4.0 / 8, 2 + 4.0 / 8, 8.0 / 8);
  check_bytes(megatron({ddp + "use_megatron_fsdp=true"}), 4.0 / 8, 4.0 / 8, 8.0 / 8);
  check_bytes(megatron({"optimizer.optimizer_cpu_offload=true", "optimizer.optimizer_offload_fraction=0.5"}),
              2 + 1.0 / 8, 2 + 4.0 / 8, 4.0 / 8);
  // Tensor-parallel ranks have a quarter each, and whole norms, which are few.
  check_bytes(megatron({"tensor_model_parallel_size=4"}), (2 + 2.0 / 2) / 4, (2 + 4.0 / 2) / 4, 8.0 / 2 / 4);
  // 32 layers of 218,112,000 in 4 stages, and an embedding or a head of 525,336,576 at the ends.
  const double stage = (8 * 218'112'000.0 + 525'336'576) / kParameters;
  check_bytes(megatron({"pipeline_model_parallel_size=4"}), (2 + 2.0 / 2) * stage, (2 + 4.0 / 2) * stage,
              8.0 / 2 * stage);
  CHECK_FALSE(megatron({"pipeline_model_parallel_size=2", "pipeline_model_parallel_layout='Et*16|t*16L'"}));
}

TEST_CASE("bytes are not known of a model that cannot be counted") {
  CHECK_FALSE(bytes_of({}, R"({"model_type": "mamba2", "hidden_size": 4096})"));
  CHECK_FALSE(bytes_of({"++policy.model_name=elsewhere"}));
  CHECK_FALSE(bytes_of({"++policy.optimizer.name=torch.optim.LBFGS"}));
}

TEST_CASE("config check says what a rank that trains holds of a large model") {
  const BytesFact large{int64_t{29} << 30, int64_t{57} << 30, int64_t{56} << 30}, small{1 << 20, 1 << 20, 1 << 20};
  CHECK(said_of(large, false) ==
        "a rank that trains holds about 142.0 GiB: parameters 29.0, gradients 57.0, optimizer state 56.0 (activations "
        "come on top)\nrun.yaml: valid\n");
  CHECK(said_of(small, false) == "run.yaml: valid\n");
  CHECK(said_of(std::nullopt, false) == "run.yaml: valid\n");
  CHECK(said_of(large, false, /*valid=*/false).find("GiB") == std::string::npos);
  CHECK(Json::parse(said_of(small, true)).at("bytes") ==
        Json{{"parameters", 1 << 20}, {"gradients", 1 << 20}, {"optimizer", 1 << 20}});
  CHECK_FALSE(Json::parse(said_of(std::nullopt, true)).contains("bytes"));
}

TEST_CASE("a backend's own expressions of bytes") {
  const auto bytes = [](const Json& fact) {
    plugin_test::PluginFolder folder;
    folder.write_manifest(folder.path() / "libtheirs.so", "theirs",
                          {{"kind", "backend"}, {"config", {{"facts", {{"bytes", fact}}}, {"keys", Json::object()}}}});
    const Files files({{"a.yaml", kValid}, {"m/config.json", kLlama}});
    return hexad::config::load_with_defaults(
               files / "a.yaml", {"++policy.model_name=" + (files / "m").string(), "++policy.backend=theirs",
                                  "++plugins.paths=[" + folder.path().string() + "]"})
        .facts.bytes;
  };
  const Json whole = {{"parameters", "model.parameters * 2"}, {"gradients", "1.5"}, {"optimizer", "0"}};
  CHECK(bytes(whole)->parameters == 2 * static_cast<int64_t>(kParameters));
  CHECK(bytes(whole)->gradients == 1);
  CHECK_FALSE(bytes({{"parameters", "1"}, {"gradients", "1"}}));
  CHECK_FALSE(bytes({{"parameters", "1"}, {"gradients", "1"}, {"optimizer", "-1"}}));
  CHECK_FALSE(bytes({{"parameters", "1"}, {"gradients", "1"}, {"optimizer", "model.no_such"}}));
}
