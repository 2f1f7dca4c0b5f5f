// The reward head of the last stage: scores of sequences and their gradients against the plain way.
#include "tests/plugins/backend/reward_head.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;

namespace {

void scores_cut(const rank_process::Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  const Weights weights = write_reward_model(dir.path(), megatron_model("llama"));
  const std::vector<Sequence> data = scored_sequences();
  const Scored want = plain_scores(dir.path(), weights, data, 2);
  {
    Instance backend(as_reward_model(megatron_policy(dir.path(), json::parse(rank.argument))));
    check_scores(backend, want, data, {2, false, false});
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"scores_cut", scores_cut}});

}  // namespace

TEST_CASE("scores and their gradients are the same in every layout") {
  rank_process::run("scores_cut", 1, "{}");
  for (const char* layout :
       {R"({"tensor_model_parallel_size": 2})", R"({"tensor_model_parallel_size": 2, "sequence_parallel": true})",
        R"({"context_parallel_size": 2})", R"({"pipeline_model_parallel_size": 2})"})
    rank_process::run("scores_cut", 2, layout);
  rank_process::run(
      "scores_cut", 4,
      R"({"tensor_model_parallel_size": 2, "sequence_parallel": true, "pipeline_model_parallel_size": 2})");
}

TEST_CASE("a model without a reward head gets a random one, the same in both backends' files") {
  const TemporaryDir dir, saved;
  write_model(dir.path(), megatron_model("llama"));
  json config = as_reward_model(megatron_policy(dir.path(), json::object()));
  config["random_init_seed"] = 3;
  Instance backend((one_rank(), config));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const at::Tensor head = backend.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight");
  CHECK(head.abs().sum().item<float>() > 0);
  backend.save(saved.path(), HEXAD_CHECKPOINT_MODEL);
  Instance again((one_rank(), as_reward_model(megatron_policy(saved.path() / "weights", json::object()))));
  REQUIRE_MESSAGE(again.code() == HEXAD_OK, again.error());
  CHECK(again.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight").equal(head));
}
