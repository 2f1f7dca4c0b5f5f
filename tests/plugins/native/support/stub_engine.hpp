// An engine whose model is a constant: every pass draws the same token for everybody.
#pragma once
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plugins/native/engine.hpp"
#include "plugins/native/mailbox.hpp"
#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

namespace native_test {

class StubExecutor : public hexad::native::Executor {
 public:
  void set_weights(hexad::native::WeightMap weights) override {
    if (refuses && !weights.empty()) throw std::runtime_error("no memory for the weights");
    weights_ = std::move(weights);
  }
  hexad::native::WeightMap weights() const override { return weights_; }
  at::Tensor forward(const hexad::native::Step&, hexad::native::KvCache&) override { return {}; }
  void start(const hexad::native::Step& step, hexad::native::KvCache&) override {
    size_t samplers = 0;
    for (const hexad::native::Chunk& chunk : step.chunks) samplers += chunk.samplers.size();
    draws_.assign(samplers, {.token = 7, .logprob = -1});
    ++passes;
  }

  bool refuses = false;  // sets of weights
  int64_t passes = 0;

 private:
  hexad::native::WeightMap weights_;
};

inline hexad::modeling::ModelConfig stub_config() {
  return hexad::modeling::parse_model_config(tiny_config("llama"), "stub");
}

// `executor`: null, or where to write the engine's own.
inline std::unique_ptr<hexad::native::Engine> stub_engine(bool has_weights, StubExecutor** executor = nullptr) {
  auto stub = std::make_unique<StubExecutor>();
  if (executor) *executor = stub.get();
  const hexad::native::SchedulerOptions schedule{
      .block_size = 4, .num_blocks = 40, .max_sequences = 8, .max_tokens = 16};
  return std::make_unique<hexad::native::Engine>(
      hexad::native::EngineOptions{.schedule = schedule, .max_length = 100, .eos = {0}}, std::move(stub),
      hexad::native::KvCache(stub_config(), 4, 40, at::kFloat, at::kCPU), has_weights);
}

inline std::unique_ptr<hexad::native::Sequence> sequence_of(uint64_t id, int64_t new_tokens = 3) {
  auto sequence = std::make_unique<hexad::native::Sequence>();
  sequence->request.id = sequence->request.group = id;
  sequence->request.prompt = sequence->tokens = {1, 2, 3};
  sequence->request.max_new_tokens = new_tokens;
  return sequence;
}

inline hexad::native::Mailbox::Sequences sequences_of(const std::vector<uint64_t>& ids) {
  hexad::native::Mailbox::Sequences sequences;
  for (const uint64_t id : ids) sequences.push_back(sequence_of(id));
  return sequences;
}

// Ids of the completions that a mailbox hands out now, which are released.
inline std::vector<uint64_t> ids_out(hexad::native::Mailbox& mailbox, size_t most = 64) {
  std::vector<const hexad_completion*> events(most);
  events.resize(static_cast<size_t>(mailbox.hand_out(events)));
  std::vector<uint64_t> ids;
  for (const hexad_completion* event : events) ids.push_back(event->id);
  mailbox.release(events);
  return ids;
}

// A call of the host, on the CPU.
class HostCall {
 public:
  hexad::sdk::Call operator*() { return {hexad::plugin::host_table(nullptr), call_.handle()}; }

 private:
  hexad::plugin::CallContext context_;
  hexad::plugin::Call call_{context_, "test"};
};

}  // namespace native_test
