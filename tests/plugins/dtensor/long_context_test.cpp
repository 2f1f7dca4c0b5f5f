// A long sequence: context-parallel ranks share its activations, and the head holds the logits of a part of it at once.
#include "tests/plugins/backend/long_context.hpp"

#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"long_context", long_context_rank}});

LongStep run_step(const TemporaryDir& dir, int ranks) {
  json config = policy(dir / "model");
  config["dtensor_cfg"]["context_parallel_size"] = ranks;
  return run_long_step((dir / ("step" + std::to_string(ranks))).string(), "dtensor", config, 1024, ranks);
}

// Log-probs of one sequence of few tokens, over a vocabulary so large that its logits are most of what the pass holds:
// fp32 attention on a GPU holds a matrix of the sequence by itself.
struct HeadPass {
  at::Tensor logprobs;
  int64_t peak_bytes;
};

constexpr int64_t kTokens = 128, kVocabulary = 16384;

HeadPass head_pass(const std::filesystem::path& model, const json& chunk) {
  json config = policy(model);
  config["logprob_chunk_size"] = chunk;
  Instance backend(config);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  auto batches = backend.batches({long_sequence(kTokens, kVocabulary)}, {1, false, false});
  const at::Tensor logprobs = backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, 1).front();
  return {logprobs, backend.memory().activation_peak_bytes};
}

}  // namespace

TEST_CASE("a sequence of 1024 tokens over 2 context-parallel ranks") {
  if (!test_device::fits(2, "long_context on 2 ranks")) return;
  const TemporaryDir dir;
  write_model(dir / "model", long_model());
  const LongStep alone = run_step(dir, 1);
  check_long_step(run_step(dir, 2), alone, 2);
}

TEST_CASE("logits of logprob_chunk_size tokens are held at once") {
  one_rank();
  const TemporaryDir dir;
  json model = tiny_config("llama");
  model["vocab_size"] = kVocabulary;
  write_model(dir.path(), model);
  const HeadPass whole = head_pass(dir.path(), nullptr), parts = head_pass(dir.path(), 32);
  CHECK(relative_error(parts.logprobs, whole.logprobs) <= 1e-6);
  const double fewer = double(kTokens - 32) * kVocabulary * sizeof(float);  // bytes of logits
  CHECK(double(whole.peak_bytes - parts.peak_bytes) >= 0.9 * fewer);
}
