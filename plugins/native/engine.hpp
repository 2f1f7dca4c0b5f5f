// The generator's loop body: schedule, run the model, draw, finish. Not thread-safe: its owner takes turns.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/native/event.hpp"
#include "plugins/native/model/executor.hpp"
#include "plugins/native/stop_strings.hpp"

namespace hexad::native {

struct EngineOptions {
  SchedulerOptions schedule;
  int64_t max_length = 0;  // prompt + response
  std::vector<int64_t> eos;
};

class Engine {
 public:
  // `executor` has its weights unless `has_weights` is false; the cache is not allocated yet.
  Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, KvCache cache, bool has_weights);

  // The sequence's only known tokens are its prompt. One that can never run ends at once with an error event.
  void add(std::unique_ptr<Sequence> sequence);
  // Ends it with an ABORT event; ids that are not here (any more) are passed over.
  void cancel(uint64_t id);

  bool idle() const { return scheduler_.idle(); }
  bool has_weights() const { return has_weights_; }
  bool awake() const { return awake_; }

  // One forward pass and the tokens drawn from it. Needs weights, and to be awake. Throws only when there is no memory
  // for the cache: what goes wrong in a pass ends the sequences that were in it with error events.
  void step(const Detokenize& detokenize);
  // Events since the last call.
  std::vector<std::unique_ptr<Event>> take_events();

  // Tokens are drawn under `version` from now on. Running sequences keep what they have in the cache.
  void set_weights(WeightMap weights, int64_t version);
  void flush_prompts() { scheduler_.flush_prompts(); }
  // Gives back the cache (running sequences are computed again later), and with it the weights.
  void sleep(bool weights_too);
  void wake();

  const Scheduler& scheduler() const { return scheduler_; }
  int64_t preemptions() const { return preemptions_; }  // of sequences that have ended

 private:
  void draw_tokens(const Step& step, const at::Tensor& logits, const Detokenize& detokenize);
  void accept(Sequence& sequence, int32_t token, float logprob, const Detokenize& detokenize);
  void finish(Sequence& sequence, int32_t reason, std::string error = {});
  std::string why_never(const Sequence& sequence) const;

  EngineOptions options_;
  std::unique_ptr<Executor> executor_;
  KvCache cache_;
  Scheduler scheduler_;
  std::unordered_map<uint64_t, std::unique_ptr<Sequence>> sequences_;  // by id
  std::vector<std::unique_ptr<Event>> events_;
  uint64_t arrivals_ = 0;
  int64_t version_ = 0;
  int64_t preemptions_ = 0;
  bool has_weights_;
  bool awake_ = true;
};

}  // namespace hexad::native
