// The fact `bytes` against what ranks hold: what FSDP shares, what stays whole, types and optimizers.
#include "tests/plugins/backend/held_bytes.hpp"
#include "tests/plugins/backend/divisible_model.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"hold", hold}});

HeldCase held(const std::string& name, int world, const json& keys = json::object(),
              const std::string& family = "llama", const std::string& precision = "bfloat16") {
  HeldCase result{name, world, held_model(divisible_model(family)), policy("", precision)};
  if (family == "qwen3_moe") result.model.update({{"num_experts", 4}, {"mlp_only_layers", json::array()}});
  result.policy["dtensor_cfg"].update(keys);
  return result;
}

HeldCase with_optimizer(HeldCase result, const json& optimizer) {
  result.policy["optimizer"] = optimizer;
  return result;
}

}  // namespace

TEST_CASE("a rank of dtensor holds what the manifest's fact says") {
  check_held(held("one rank", 1));
  check_held(held("one rank, fp32", 1, json::object(), "qwen3", "float32"));
  check_held(held("FSDP2", 2));
  check_held(held("FSDP2, fp32", 2, json::object(), "qwen3", "float32"));
  check_held(held("HSDP2 x 2", 4, {{"dp_replicate_size", 2}}));
  check_held(held("TP2 DP2", 4, {{"tensor_parallel_size", 2}}));
  check_held(held("TP4, keys and values replicated", 4, {{"tensor_parallel_size", 4}}));
  check_held(held("EP2", 2, {{"expert_parallel_size", 2}}, "qwen3_moe"));
  check_held(held("EP2, EDP2", 4, {{"expert_parallel_size", 2}}, "qwen3_moe"));
  check_held(held("experts cut by TP2", 2, {{"tensor_parallel_size", 2}}, "qwen3_moe"));
  check_held(held("latent attention, TP2", 2, {{"tensor_parallel_size", 2}}, "deepseek_v3"));
  check_held(with_optimizer(held("SGD", 2), {{"name", "torch.optim.SGD"}, {"kwargs", {{"lr", 1e-3}}}}));
  check_held(with_optimizer(held("SGD with momentum", 2),
                            {{"name", "torch.optim.SGD"}, {"kwargs", {{"lr", 1e-3}, {"momentum", 0.9}}}}));
  check_held(with_optimizer(held("AMSGrad", 2),
                            {{"name", "torch.optim.AdamW"}, {"kwargs", {{"lr", 1e-3}, {"amsgrad", true}}}}));
}
