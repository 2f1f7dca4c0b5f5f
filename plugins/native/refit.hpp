// New weights for the engine: how they arrive and take the place of the old ones, and what a failure leaves behind.
//
// New weights are copied as they come. While old ones are in force they wait beside them, twice the memory of the
// weights, and take their place in end(commit), between two passes. Where none are, after sleep(2) or before the first
// update, they go to their place at once; if such an update breaks off, or is refused, there are still none in force,
// and nothing is drawn until a complete one came. What is not finite is not looked for: the first sample that meets it
// ends with an error which says so, with the version.
//
// Of a replica of several ranks all take an update or none does: what one rank refuses all refuse, with its error, and
// keep the old weights. Where new weights fail to take their place on one rank, none has any.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugins/native/engine_loop.hpp"
#include "plugins/native/settings.hpp"

namespace hexad::native {

// begin, bucket, end and layout come one at a time (class C of abi.h), from any thread, also while another one polls:
// no mutex guards the members. In a replica every rank is called alike. The engine is touched in
// EngineLoop::exclusively() alone.
class Refit {
 public:
  // `loop` outlives this.
  Refit(const Settings& settings, modeling::ModelConfig model, EngineLoop& loop);

  // Starts an update, in place of one that has not ended. Tokens are drawn under `version` once it is committed.
  void begin(const sdk::Call& call, int64_t version);
  // Copies slices on the call's stream, and does not wait for them. Throws sdk::Error: failed precondition without
  // begin(); what WeightUpdate::add() says of a bad one, after which the update cannot be committed. Among several
  // ranks end() tells what was wrong, and this function does not: a trainer whose ranks export together goes on, and so
  // do all of them.
  void bucket(const sdk::Call& call, const hexad_weight_list& bucket);
  // Without `commit` the update is dropped. With it the new weights are there at return; running sequences go on with
  // the keys and values that they have, and shared prompts are forgotten. Throws sdk::Error (failed precondition)
  // without begin(), when a bucket was refused, or when weights have not arrived in full: then the old ones stay in
  // force. Should the new ones fail to take their place, none are. Either way the update has ended.
  void end(const sdk::Call& call, bool commit);

  // Any thread. False where there have never been weights, and none are arriving: requests wait for them in vain.
  // In this order: an update that ends between the two reads has left weights.
  bool expects_weights() const { return in_progress_ || had_weights_; }

  // The slices that this rank takes, which live as long as this. Reports weight_sums() of the weights in force, as
  // metrics weight_sum/NAME: what a trainer sent can be compared. Of a matrix in FP8 they are those of the cast and, as
  // NAME_scale, of its scales: equal to another generator's with the same weights, not to the trainer's; with as many
  // ranks, too, where its columns are cut (weight_sums.hpp).
  void layout(const sdk::Call& call, hexad_weight_list& out);

 private:
  void all_or_none(Engine& engine, const std::function<void()>& body) const;
  WeightMap finish(WeightUpdate& update) const;
  void report_sums(const sdk::Call& call) const;

  modeling::ModelConfig model_;  // the whole one
  at::ScalarType dtype_;
  bool fp8_;
  EngineLoop& loop_;
  Agreement agreement_;                   // beside the order of passes
  std::atomic<bool> had_weights_;         // ever
  std::atomic<bool> in_progress_{false};  // between begin() and end()
  std::optional<WeightUpdate> update_;
  std::string failure_;  // what was wrong with the first bucket that was refused
  int64_t version_ = 0;
  std::vector<WeightPart> parts_;  // what slices_ points to
  std::vector<hexad_weight_slice> slices_;
};

}  // namespace hexad::native
