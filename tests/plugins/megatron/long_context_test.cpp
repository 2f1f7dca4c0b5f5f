// A long sequence over context-parallel ranks: the same loss and gradients, and activations that shrink with the ranks.
#include "tests/plugins/backend/long_context.hpp"

#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;

namespace {

constexpr int64_t kTokens = 4096;

const bool registered = add_scenarios({{"long_context", long_context_rank}});

struct LongStep {
  double loss = 0;
  int64_t peak_bytes = 0;  // of the rank that needs most
  Weights gradients;
};

LongStep run_long_step(const std::filesystem::path& dir, int ranks, json sizes) {
  sizes["context_parallel_size"] = ranks;
  json policy = megatron_policy(dir / "model", sizes);
  policy["logprob_chunk_size"] = 256;
  const std::string file = (dir / ("step" + std::to_string(ranks) + sizes.value("cp_comm_type", ""))).string();
  write_json(file, {{"plugin", "megatron"}, {"policy", policy}, {"tokens", kTokens}});
  rank_process::run("long_context", ranks, file);
  LongStep step;
  for (int rank = 0; rank < ranks; ++rank) {
    const json result = read_json(file + "." + std::to_string(rank));
    step.loss += result.at("loss").get<double>();
    step.peak_bytes = std::max(step.peak_bytes, result.at("activation_peak_bytes").get<int64_t>());
  }
  step.gradients = read_weights(file + ".grads");
  return step;
}

json long_model() {
  json model = megatron_model("llama");
  model.update({{"hidden_size", 64}, {"head_dim", 16}, {"intermediate_size", 96}, {"num_hidden_layers", 2}});
  return model;
}

}  // namespace

TEST_CASE("a sequence of 4096 tokens over 2 and 4 context-parallel ranks") {
  const TemporaryDir folder;
  write_model(folder.path() / "model", long_model());
  const LongStep alone = run_long_step(folder.path(), 1, json::object());
  const auto check = [&](int ranks, const json& sizes) {
    if (!test_device::fits(ranks, "long_context on " + std::to_string(ranks) + " ranks")) return;
    const LongStep step = run_long_step(folder.path(), ranks, sizes);
    const double share = static_cast<double>(step.peak_bytes) * ranks / static_cast<double>(alone.peak_bytes);
    MESSAGE(ranks << " ranks " << sizes.dump() << ": peak " << step.peak_bytes << " of " << alone.peak_bytes
                  << " bytes, x ranks " << share);
    CHECK(std::abs(step.loss - alone.loss) <= 1e-5 * std::abs(alone.loss));
    CHECK(relative_error(step.gradients, alone.gradients) <= (test_device::is_gpu() ? 4e-5 : 1e-5));
    if (test_device::is_gpu()) return;  // there one rank alone holds fp32's whole matrix of probabilities
    CHECK(share <= 1.3);
    CHECK(share >= 0.8);
  };
  check(2, json::object());
  check(4, json::object());
  check(4, {{"cp_comm_type", "a2a"}});
}
