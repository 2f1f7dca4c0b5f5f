// The generator's loop body: schedule, run the model, draw, finish. Not thread-safe: its owner takes turns.
//
// Where the executor lets two passes be in flight, the next is scheduled and enqueued before the draws of the last are
// known: a sequence's newest token is then a placeholder that the device can resolve, lengths are known without it, and
// a stop token or string is seen one pass late (what was drawn after it is dropped).
#pragma once
#include <hexad/stop_strings.hpp>

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/native/event.hpp"
#include "plugins/native/model/executor.hpp"

namespace hexad::native {

struct EngineOptions {
  SchedulerOptions schedule;
  int64_t max_length = 0;  // prompt + response
  std::vector<int64_t> eos;
  std::string replica = {};  // the ranks that run each pass together; empty: this one alone
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
  // Whether a pass could run, were there weights: there is work, and neither pause nor sleep holds it up.
  bool ready() const { return awake_ && !paused_ && !idle(); }
  bool has_cache() const { return cache_.allocated(); }

  // Memory for keys and values: as step() makes it where there is none. Throws when there is not enough.
  void make_cache();
  // Before anything is in it.
  void drop_cache() { cache_.release(); }
  // Starts a forward pass, if there is one to run, and takes in the draws of the oldest one when as many are in flight
  // as may be, or none was started. Needs weights, and to be awake. Throws only when there is no memory for the cache:
  // what goes wrong in a pass ends the sequences that were in it with error events; or when a rank of the replica is
  // lost, or its pass failed while the others' went on (c10::DistError), after which there is nothing left to do.
  void step(const sdk::Detokenize& detokenize);
  // Events since the last call.
  std::vector<std::unique_ptr<Event>> take_events();

  // Where a new set of weights may be put at once: nowhere while one is in force.
  WeightMap places() { return has_weights_ ? WeightMap() : executor_->places(); }
  WeightMap weights() const { return has_weights_ ? executor_->weights() : WeightMap(); }
  // Tokens are drawn under `version` from now on. Running sequences keep what they have in the cache.
  // Should it fail there are none.
  void set_weights(WeightMap weights, int64_t version);
  void drop_weights();
  void flush_prompts() { scheduler_.flush_prompts(); }
  // Nothing is ready until resume(); everything stays where it is.
  void pause() { paused_ = true; }
  void resume() { paused_ = false; }
  // Gives back the cache (running sequences are computed again later), and with it the weights.
  void sleep(bool weights_too);
  void wake();

  const Scheduler& scheduler() const { return scheduler_; }
  uint64_t digest() const { return digest_; }           // of all requests and tokens drawn so far, in order
  int64_t preemptions() const { return preemptions_; }  // of sequences that have ended

 private:
  // A pass whose draws have not been taken in: who drew, in order, under which weights.
  struct Pass {
    struct Drawer {
      uint64_t id, arrival;
    };
    std::vector<Drawer> drawers;
    int64_t version;
    std::vector<Draw> draws;
    std::string failure;
  };

  void start_pass(const Step& step);
  void fetch(Pass& pass);                                // waits for the draws of the oldest pass in flight
  void lose_replica(const std::exception& error) const;  // throws, unless this rank is alone
  // Fetches the draws of every pass in flight: before weights or cache go. They are taken in by the next step().
  void drain();
  void take_in(const Pass& pass, const sdk::Detokenize& detokenize);
  Sequence* find(uint64_t id, uint64_t arrival) const;
  void accept(Sequence& sequence, const Draw& draw, int64_t version, const sdk::Detokenize& detokenize);
  void finish(Sequence& sequence, int32_t reason, std::string error = {});
  std::string why_never(const Sequence& sequence) const;

  EngineOptions options_;
  std::unique_ptr<Executor> executor_;
  KvCache cache_;
  Scheduler scheduler_;
  std::unordered_map<uint64_t, std::unique_ptr<Sequence>> sequences_;  // by id
  std::deque<Pass> in_flight_, fetched_;
  std::vector<std::unique_ptr<Event>> events_;
  uint64_t arrivals_ = 0, digest_ = 0;
  int64_t version_ = 0;
  int64_t preemptions_ = 0;
  bool has_weights_;
  bool awake_ = true, paused_ = false;
};

}  // namespace hexad::native
