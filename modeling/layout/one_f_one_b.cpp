// 1F1B with one chunk a rank: PP - rank - 1 forwards, then a forward and a backward in turn, then the backwards left.
#include <algorithm>

#include "modeling/layout/schedule_builder.hpp"

namespace hexad::modeling::layout {
namespace {

class OneFOneB {
 public:
  OneFOneB(const PipelineOptions& options, int64_t rank)
      : options_(options),
        first_(rank == 0),
        last_(rank == options.ranks - 1),
        warmup_(std::min(options.ranks - rank - 1, options.microbatches)) {}

  PipelineSchedule build() {
    schedule_.hold_gradients();
    for (int64_t i = 0; i < warmup_; ++i) {
      receive_activation(i);
      forward(i);
      send_activation(i);
    }
    if (warmup_ < options_.microbatches) receive_activation(warmup_);
    for (int64_t i = warmup_; i < options_.microbatches; ++i) {
      if (options_.forward_only) {
        forward_step(i);
      } else {
        steady_step(i);
      }
    }
    if (!options_.forward_only) flush();
    return schedule_.take();
  }

 private:
  static PipelineUnit unit(int64_t i) { return {0, static_cast<int32_t>(i)}; }
  bool is_last(int64_t i) const { return i == options_.microbatches - 1; }

  void receive_activation(int64_t i) {
    if (!first_) schedule_.exchange({}, {}, unit(i), {});
  }
  void send_activation(int64_t i) {
    if (!last_) schedule_.exchange(unit(i), {}, {}, {});
  }
  void forward(int64_t i) {
    std::optional<bool> recompute;
    if (options_.partial_checkpoints) recompute = i % (warmup_ + 1) >= *options_.partial_checkpoints;
    schedule_.forward(unit(i), i, recompute);
  }
  // The first stage ends last: its reduction overlaps with its last backward. Others reduce in their bubble.
  void release_for(int64_t i) {
    if (is_last(i) && (!options_.sync_by_chunk || first_)) schedule_.release_gradients();
  }

  void forward_step(int64_t i) {
    forward(i);
    send_activation(i);
    if (!is_last(i)) receive_activation(i + 1);
  }

  void steady_step(int64_t i) {
    const int64_t done = i - warmup_;  // the backward that pairs with forward i
    forward(i);
    if (!last_) schedule_.exchange(unit(i), {}, {}, unit(done));
    release_for(done);
    schedule_.backward(unit(done), done);
    if (first_) return;
    schedule_.exchange({}, unit(done), is_last(i) ? ScheduleBuilder::MaybeUnit() : unit(i + 1), {});
  }

  void flush() {
    for (int64_t i = options_.microbatches - warmup_; i < options_.microbatches; ++i) {
      release_for(i);
      schedule_.exchange({}, {}, {}, unit(i));
      schedule_.backward(unit(i), i);
      if (!first_) schedule_.exchange({}, unit(i), {}, {});
    }
    if (schedule_.held()) {
      schedule_.release_gradients();
      if (options_.sync_by_chunk) schedule_.reduce_gradients(0);
    }
    schedule_.finalize();
  }

  const PipelineOptions& options_;
  const bool first_, last_;
  const int64_t warmup_;
  ScheduleBuilder schedule_;
};

}  // namespace

PipelineSchedule one_f_one_b(const PipelineOptions& options, int64_t rank) { return OneFOneB(options, rank).build(); }

}  // namespace hexad::modeling::layout
