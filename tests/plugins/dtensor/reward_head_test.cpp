// The reward head: scores of sequences and their gradients against the plain way in every layout, saved and loaded.
#include "tests/plugins/backend/reward_head.hpp"

#include "tests/plugins/backend/divisible_model.hpp"

using namespace backend_test;

namespace {

json reward_policy(const std::filesystem::path& dir) { return as_reward_model(policy(dir, "float32")); }

// "llama tensor_parallel_size=2": family and layout.
void scores_cut(const rank_process::Rank& rank) {
  start_runtime(rank);
  const json wanted = json::parse(rank.argument);
  const TemporaryDir dir;
  const Weights weights = write_reward_model(dir.path(), divisible_model("llama"));
  const std::vector<Sequence> data = scored_sequences();
  const Scored want = plain_scores(dir.path(), weights, data, 3);
  json config = reward_policy(dir.path());
  config["dtensor_cfg"].update(wanted);
  {
    Instance backend(config);
    check_scores(backend, want, data, {3, false, false});
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"scores_cut", scores_cut}});

}  // namespace

TEST_CASE("scores and their gradients are those of the last token's hidden state, tied or not, packed or padded") {
  for (const char* family : {"llama", "qwen3"}) {
    CAPTURE(family);
    const TemporaryDir dir;
    const Weights weights = write_reward_model(dir.path(), tiny_config(family));
    const std::vector<Sequence> data = make_sequences(5, 3);
    const Scored want = plain_scores(dir.path(), weights, data, 8);
    Instance backend((one_rank(), reward_policy(dir.path())));
    for (const bool padded : {false, true}) check_scores(backend, want, data, {8, padded, false});
  }
}

TEST_CASE("scores and their gradients are the same on tensor- and context-parallel ranks") {
  for (const char* layout :
       {R"({"tensor_parallel_size": 2})", R"({"tensor_parallel_size": 2, "sequence_parallel": true})",
        R"({"context_parallel_size": 2})"})
    rank_process::run("scores_cut", 2, layout);
  rank_process::run("scores_cut", 4,
                    R"({"tensor_parallel_size": 2, "sequence_parallel": true, "context_parallel_size": 2})");
}

TEST_CASE("a model without a reward head gets a random one, the same for one seed, and keeps it when saved") {
  const TemporaryDir dir, saved;
  write_tiny_model(dir.path(), "llama");
  const auto score_of = [&](int64_t seed) {
    json config = reward_policy(dir.path());
    config["random_init_seed"] = seed;
    Instance backend((one_rank(), config));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    backend.save(saved.path(), HEXAD_CHECKPOINT_MODEL);
    return backend.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight");
  };
  const at::Tensor other = score_of(4), third = score_of(3);
  CHECK(score_of(3).equal(third));
  CHECK_FALSE(other.equal(third));
  CHECK(third.sizes() == at::IntArrayRef({1, 20}));

  Instance again((one_rank(), reward_policy(saved.path() / "weights")));
  REQUIRE_MESSAGE(again.code() == HEXAD_OK, again.error());
  CHECK(again.weights(HEXAD_WEIGHTS_CURRENT).at("score.weight").equal(third));
  std::ifstream in(saved.path() / "weights/config.json");
  const json config = json::parse(in);
  CHECK(config.at("architectures") == json::array({"LlamaForSequenceClassification"}));
  CHECK(config.at("num_labels") == 1);
}

TEST_CASE("a reward model has scores and no log-probs, and scores no empty sequence") {
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  Instance backend((one_rank(), reward_policy(dir.path())));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  std::vector<Sequence> with_empty = make_sequences(2, 3);
  with_empty.push_back(Sequence{});
  auto batches = backend.batches(with_empty, {8, false, false});
  const hexad_batch* pointers[] = {&batches[0].batch};
  float out[3] = {};
  int64_t count = 3;
  DLTensor dl{out, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &count, nullptr, 0};
  hexad_named_tensor named{"sequence_scores", &dl, nullptr, HEXAD_AXIS_SAMPLE, 0};
  hexad_named_tensor* outputs[] = {&named};
  hexad_forward_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
  args.batches = pointers;
  args.num_batches = args.num_outputs = 1;
  args.outputs = outputs;
  args.temperature = args.top_p = 1;
  CHECK(vtable().forward(backend.self(), backend.call(), &args) == HEXAD_INVALID_ARGUMENT);
  CHECK(backend.error().find("sequence 2 is empty: a score needs a token") != std::string::npos);
}
