// One training step over one long sequence, and what it took. Its argument is a file, {"plugin", "policy", "tokens"};
// each rank writes <file>.<rank> with its loss, seconds and bytes, and rank 0 the gradients into the folder
// <file>.grads. benchmarks/long_context.py runs it too.
#pragma once
#include <chrono>

#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

inline Sequence long_sequence(int64_t tokens, int64_t vocabulary) {
  Sequence sequence;
  uint64_t state = 12345;
  for (int64_t t = 0; t < tokens; ++t) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    sequence.ids.push_back(static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(vocabulary)));
    sequence.weight.push_back(t == 0 ? 0.0f : static_cast<float>((state >> 40) % 2000) / 1000.0f - 1.0f);
  }
  return sequence;
}

inline json read_json(const std::filesystem::path& file) { return json::parse(std::ifstream(file)); }

inline hexad_memory_stats memory_of(Instance& backend, const std::string& plugin) {
  hexad_memory_stats stats{};
  stats.struct_size = HEXAD_STRUCT_SIZE(hexad_memory_stats, reserved_bytes);
  backend.check(vtable_of(plugin).memory(backend.self(), backend.call(), &stats));
  return stats;
}

inline void long_context_rank(const rank_process::Rank& rank) {
  runtime_test::start(rank, 900'000);
  const json wanted = read_json(rank.argument);
  const json& policy = wanted.at("policy");
  const auto config = hexad::modeling::load_model_config(policy.at("model_name").get<std::string>());
  Instance backend(policy, wanted.at("plugin"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const int64_t tokens = wanted.at("tokens");
  auto batches = backend.batches({long_sequence(tokens, config.vocab_size)}, {1, false, false});
  const auto begin = std::chrono::steady_clock::now();
  const double loss = backend.train(batches, static_cast<double>(tokens), 1.0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const hexad_memory_stats memory = memory_of(backend, wanted.at("plugin"));
  const Weights gradients = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  if (rank.rank == 0) {
    std::filesystem::create_directories(rank.argument + ".grads");
    write_weights(rank.argument + ".grads", gradients);
  }
  write_json(rank.argument + "." + std::to_string(rank.rank), {{"loss", loss},
                                                               {"seconds", seconds},
                                                               {"activation_peak_bytes", memory.activation_peak_bytes},
                                                               {"allocated_bytes", memory.allocated_bytes}});
  runtime_test::runtime().stop();
}

inline json long_model() {
  json model = divisible_model("llama");
  model.update({{"hidden_size", 64}, {"head_dim", 16}, {"intermediate_size", 96}, {"num_hidden_layers", 2}});
  return model;
}

struct LongStep {
  double loss = 0;
  int64_t peak_bytes = 0;  // of the rank that needs most
  Weights gradients;
};

// The scenario "long_context" on so many ranks; `file` is its argument.
inline LongStep run_long_step(const std::string& file, const std::string& plugin, const json& policy, int64_t tokens,
                              int ranks) {
  write_json(file, {{"plugin", plugin}, {"policy", policy}, {"tokens", tokens}});
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

// That `ranks` made the step of one, each with its part of the activations.
inline void check_long_step(const LongStep& step, const LongStep& alone, int ranks) {
  const double share = static_cast<double>(step.peak_bytes) * ranks / static_cast<double>(alone.peak_bytes);
  MESSAGE(ranks << " ranks: peak " << step.peak_bytes << " of " << alone.peak_bytes << " bytes, x ranks " << share);
  CHECK(std::abs(step.loss - alone.loss) <= 1e-5 * std::abs(alone.loss));
  CHECK(relative_error(step.gradients, alone.gradients) <= (test_device::is_gpu() ? 4e-5 : 1e-5));
  if (test_device::is_gpu()) return;  // there one rank alone holds fp32's whole matrix of probabilities
  CHECK(share <= 1.3);
  CHECK(share >= 0.8);
}

}  // namespace backend_test
