// Router replay through the whole engine: the generator tells where its routers sent each token, and training goes
// there.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/run/first_party.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

using Json = nlohmann::json;

// The quickstart's model with four experts in each block, two a token.
std::string model_with_experts(const TempDir& dir) {
  toy::fs::create_directories(dir / "model");
  const toy::fs::path from = source() + "/configs/quickstart_model";
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    dir.write(std::string("model/") + file, toy::read_text(from / file));
  Json config = Json::parse(toy::read_text(from / "config.json"));
  config.update({{"architectures", {"Qwen3MoeForCausalLM"}},
                 {"model_type", "qwen3_moe"},
                 {"num_experts", 4},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 48},
                 {"norm_topk_prob", true},
                 {"decoder_sparse_step", 1}});
  dir.write("model/config.json", config.dump());
  return (dir / "model").string();
}

toy::Ended train(const TempDir& dir, const std::vector<std::string>& layout) {
  const std::vector<std::string> run = {"policy.model_name=" + model_with_experts(dir), "grpo.max_num_steps=4",
                                        "++policy.router_replay.enabled=true"};
  return toy::run(first_party::train(source() + "/configs/quickstart.yaml", dir,
                                     both(both(first_party::training_alone(), run), layout)));
}

}  // namespace

TEST_CASE("training on the rollout's own routing computes the rollout's own log-probs, in both backends") {
  const std::vector<std::string> megatron = {"policy.megatron_cfg.enabled=true",
                                             "++policy.megatron_cfg.tensor_model_parallel_size=2",
                                             "++policy.megatron_cfg.sequence_parallel=true",
                                             "++policy.megatron_cfg.expert_model_parallel_size=2",
                                             "++policy.megatron_cfg.expert_tensor_parallel_size=1",
                                             "policy.make_sequence_length_divisible_by=2",
                                             "cluster.gpus_per_node=2"};
  for (const auto& layout : {megatron, std::vector<std::string>{"cluster.gpus_per_node=2"}}) {
    CAPTURE(layout.front());
    const TempDir dir;
    const toy::Ended run = train(dir, layout);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    std::ifstream metrics(dir / "logs/exp_001/metrics.jsonl");
    int steps = 0;
    for (std::string line; std::getline(metrics, line);) {
      const Json step = Json::parse(line);
      if (!step.contains("train/token_mult_prob_error")) continue;
      ++steps;
      CHECK(step.at("train/token_mult_prob_error").get<double>() < 1.00001);
      CHECK(step.at("train/grad_norm").get<double>() > 0);
    }
    CHECK(steps == 4);
  }
}

TEST_CASE("a generator that does not tell its routing is refused before the first rollout") {
  const TempDir dir;
  const toy::Ended run = train(dir, first_party::replaying(dir.write("rollouts.txt", "")));
  CHECK(run.code != 0);
  INFO(run.err);
  for (const char* part :
       {"policy.router_replay: backend 'dtensor'", " wants routed_experts, which generator 'replay' 1.0.0",
        " does not give. Choose another policy.generation.backend, or set policy.router_replay.source "
        "to logprobs"})
    CHECK(run.err.find(part) != std::string::npos);
}

TEST_CASE("a model without experts is refused") {
  for (const char* source_of : {"rollout", "logprobs"}) {
    const TempDir dir;
    const toy::Ended run = train(dir, {"policy.model_name=" + source() + "/configs/quickstart_model",
                                       std::string("policy.router_replay.source=") + source_of});
    CHECK(run.code != 0);
    CHECK_MESSAGE(
        run.err.find("policy.router_replay.enabled: model_type 'llama' has no experts to replay the choice of; "
                     "nearest: false") != std::string::npos,
        run.err);
  }
}
