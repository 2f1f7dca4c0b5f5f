// Rules about the device mesh of the dtensor backend: messages, and a valid neighbour of each.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

namespace {

Overrides mesh(const Overrides& keys) {
  Overrides all = {"/policy.megatron_cfg.enabled=false"};
  for (const std::string& key : keys) all.push_back(key.starts_with('/') ? key : "/policy.dtensor_cfg." + key);
  return all;
}

void check_meshes(const std::string& model, const std::vector<RuleCase>& cases) {
  std::vector<RuleCase> full;
  for (const RuleCase& rule : cases) full.push_back({mesh(rule.refused), rule.message, mesh(rule.valid)});
  check_rules(model, full);
}

const std::string kTp = "tensor_parallel_size=", kCp = "context_parallel_size=", kReplicas = "dp_replicate_size=",
                  kEp = "expert_parallel_size=";

}  // namespace

TEST_CASE("a device mesh fits the ranks") {
  check_meshes(kDense,
               {{{kTp + "3"},
                 "tensor_parallel_size: tensor_parallel_size 3 x context_parallel_size 1 = 3 does not divide the 8 "
                 "ranks; nearest: 2 or 4",
                 {kTp + "4", "sequence_parallel=true"}},
                {{kTp + "4", kCp + "4"},
                 "context_parallel_size: tensor_parallel_size 4 x context_parallel_size 4 = 16 does not divide the 8 "
                 "ranks; nearest: 2",
                 {kTp + "4", kCp + "2"}},
                {{kTp + "2", kReplicas + "3"},
                 "dp_replicate_size: got 3, wanted a divisor of the 4 data-parallel ranks; nearest: 2 or 4",
                 {kTp + "2", kReplicas + "2"}}});
}

TEST_CASE("tensor parallelism of the dtensor backend fits the model") {
  const std::string heads = R"({"model_type": "qwen3", "vocab_size": 64, "hidden_size": 96,
                                "num_attention_heads": 12, "num_key_value_heads": 2, "num_hidden_layers": 8,
                                "intermediate_size": 100})";
  check_meshes(
      heads,
      {{{kTp + "8"}, "tensor_parallel_size 8 does not divide num_attention_heads 12; nearest: 6 or 12", {kTp + "4"}},
       {{kTp + "8"}, "tensor_parallel_size 8 does not divide intermediate_size 100; nearest: 5 or 10", {kTp + "2"}}});
  const std::string experts = R"({"model_type": "qwen3_moe", "vocab_size": 64, "hidden_size": 64,
                                  "num_attention_heads": 8, "num_key_value_heads": 4, "num_hidden_layers": 8,
                                  "intermediate_size": 7, "moe_intermediate_size": 50, "num_experts": 12,
                                  "num_experts_per_tok": 2})";
  check_meshes(
      experts,
      {{{kTp + "4"}, "tensor_parallel_size 4 does not divide moe_intermediate_size 50; nearest: 2 or 5", {kTp + "2"}}});
}

TEST_CASE("expert parallelism of the dtensor backend fits the ranks and the model") {
  check_meshes(kExperts,
               {{{kEp + "3"},
                 "expert_parallel_size: got 3, wanted a divisor of the 8 ranks of dp_shard 8 x context_parallel_size 1 "
                 "x tensor_parallel_size 1; nearest: 2 or 4",
                 {kEp + "4"}},
                {{kEp + "8"},
                 "expert_parallel_size: expert_parallel_size 8 does not divide num_experts 12; nearest: 4",
                 {kEp + "2", kReplicas + "2"}},
                {{kEp + "2", kTp + "2"},
                 "sequence_parallel: expert_parallel_size 2 with tensor_parallel_size 2 needs sequence_parallel: true, "
                 "for every tensor-parallel rank would send the same tokens to the experts; nearest: true",
                 {kEp + "2", kTp + "2", "sequence_parallel=true"}}});
  check_meshes(
      kDense,
      {{{kEp + "2"}, "expert_parallel_size: 2 needs a model with experts, got a dense one; nearest: 1", {kTp + "2"}}});
}

TEST_CASE("how context-parallel ranks of the dtensor backend exchange keys") {
  const std::string type = "cp_comm_type=", sizes = "hierarchical_context_parallel_sizes=";
  const std::string heads = "/policy.hf_config_overrides={num_attention_heads: 4, num_key_value_heads: 4}";
  check_meshes(
      kDense,
      {{{kCp + "2", type + "ring"},
        "policy.dtensor_cfg.cp_comm_type: got 'ring', wanted one of p2p, all_gather, a2a, a2a+p2p",
        {kCp + "2", type + "all_gather"}},
       {{kCp + "8", type + "a2a", heads},
        "a2a shares heads: num_attention_heads 4 is no multiple of 8 (context 8 x tensor parallel 1); nearest: p2p",
        {kCp + "4", type + "a2a", heads}},
       {{kCp + "4", type + "'a2a+p2p'", sizes + "[3, 2]"},
        "policy.dtensor_cfg.hierarchical_context_parallel_sizes: got [3, 2], wanted two sizes whose product is "
        "context_parallel_size 4; nearest: [2, 2]",
        {kCp + "4", type + "'a2a+p2p'", sizes + "[2, 2]"}}});
}

TEST_CASE("model-parallel ranks are no data-parallel ranks of the dtensor backend") {
  const MegatronFiles files(kDense);
  const Overrides small = {"/grpo.num_prompts_per_step=4", "/grpo.num_generations_per_prompt=1",
                           "/policy.train_global_batch_size=4", "/policy.train_micro_batch_size=1",
                           "/policy.logprob_batch_size=1"};
  Overrides plain = mesh(small), shared = mesh(small);
  shared.push_back("/policy.dtensor_cfg." + kTp + "2");
  check_says(files.error(plain),
             "policy.train_global_batch_size: got 4, wanted a multiple of the 8 data-parallel ranks");
  CHECK(files.error(shared) == "");
}

TEST_CASE("sequence parallelism without tensor parallelism is a notice") {
  CHECK(has_notice(MegatronFiles(kDense).resolve(mesh({"sequence_parallel=true"})),
                   "policy.dtensor_cfg.sequence_parallel", "no effect"));
}

TEST_CASE("FP8 of the dtensor backend has the keys and rules of megatron's, and a recipe that is available") {
  check_meshes(kDense, {{{"fp8_cfg={enabled: true, fp8_recipe: mxfp8}"},
                         "fp8_cfg.fp8_recipe: the recipe mxfp8 is not available in this version",
                         {"fp8_cfg={enabled: true, fp8: hybrid, fp8_recipe: blockwise}"}},
                        {{"fp8_cfg={fp8_param: true}"},
                         "fp8_cfg.fp8_param: needs fp8_cfg.enabled: true",
                         {"fp8_cfg={enabled: true, fp8_param: false}"}}});
}
