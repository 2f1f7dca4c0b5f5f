// Interleaved 1F1B: a rank holds several chunks of the model and runs groups of micro-batches through each in turn.
#include <algorithm>
#include <set>

#include "modeling/layout/schedule_builder.hpp"

namespace hexad::modeling::layout {
namespace {

class Interleaved {
 public:
  using MaybeUnit = ScheduleBuilder::MaybeUnit;

  Interleaved(const PipelineOptions& options, int64_t rank)
      : options_(options),
        rank_(rank),
        last_chunk_(static_cast<int32_t>(*options.chunks) - 1),
        counts_(warmup_counts(options, rank)),
        table_(schedule_table(options)),
        sync_(options.sync_by_chunk && !options.forward_only) {}

  PipelineSchedule build() {
    schedule_.hold_gradients();
    if (sync_) {
      for (int32_t chunk = 0; chunk <= std::min(1, last_chunk_); ++chunk) schedule_.gather_parameters(chunk);
    }
    if (!first()) schedule_.exchange({}, {}, unit(0, true), {});
    for (int64_t k = 0; k < counts_.warmup; ++k) warmup_step(k);
    for (int64_t k = 0; k < counts_.remaining; ++k) steady_step(k);
    if (options_.forward_only) return schedule_.take();
    if (counts_.all_in_warmup && !last()) schedule_.exchange({}, {}, {}, unit(0, false));
    for (int64_t k = counts_.remaining; k < counts_.total; ++k) flush_step(k);
    finish();
    return schedule_.take();
  }

 private:
  bool first() const { return rank_ == 0; }
  bool last() const { return rank_ == options_.ranks - 1; }

  // The k-th unit that this rank runs.
  PipelineUnit unit(int64_t k, bool forward) const {
    PipelineUnit at = table_[k];
    if (!forward) at.chunk = last_chunk_ - at.chunk;
    return at;
  }
  // Its result, if another stage wants it.
  MaybeUnit outgoing(int64_t k, bool forward) const {
    const PipelineUnit at = unit(k, forward);
    const bool ends = forward ? last() && at.chunk == last_chunk_ : first() && at.chunk == 0;
    return ends ? MaybeUnit() : MaybeUnit(at);
  }
  // What arrives during step k. The stage that leads (the first forward, the last backward) is PP - 1 steps ahead of
  // the one that closes the ring to it, and gets what that one made so many steps ago; the others get their next input.
  MaybeUnit incoming(int64_t k, bool forward) const {
    if (k + 1 >= counts_.total) return {};
    if (forward ? !first() : !last()) return unit(k + 1, forward);
    const int64_t made = k - (options_.ranks - 1);
    if (made < 0) return {};
    PipelineUnit at = unit(made, forward);
    if (at.chunk == (forward ? last_chunk_ : 0)) return {};
    at.chunk += forward ? 1 : -1;
    return at;
  }
  bool starts_chunk(int64_t k) const { return k < counts_.total && table_[k].microbatch == 0; }
  bool ends_chunk(int64_t k) const { return k >= 0 && table_[k].microbatch == options_.microbatches - 1; }

  void forward(int64_t k) {
    // All ranks start a gather at the same time: rank r is r steps behind the first.
    if (sync_ && starts_chunk(k + rank_)) {
      const int32_t next = table_[k + rank_].chunk + 1;
      if (next > 1 && next <= last_chunk_) schedule_.gather_parameters(next);
    }
    std::optional<bool> recompute;
    if (options_.partial_checkpoints) recompute = k % (counts_.warmup + 1) >= *options_.partial_checkpoints;
    schedule_.forward(unit(k, true), k, recompute);
  }

  void backward(int64_t k) {
    if (!sync_ && ends_chunk(k)) schedule_.release_gradients();
    schedule_.backward(unit(k, false), k);
    // Likewise reductions, delayed on later ranks.
    if (sync_ && ends_chunk(k - rank_)) {
      schedule_.release_gradients();
      reduce(unit(k - rank_, false).chunk);
    }
    schedule_.hold_gradients();
  }

  void reduce(int32_t chunk) {
    if (reduced_.insert(chunk).second) schedule_.reduce_gradients(chunk);
  }

  void warmup_step(int64_t k) {
    const bool prefetch = options_.prefetch && !first();
    if (prefetch) schedule_.exchange({}, {}, incoming(k, true), {});
    forward(k);
    const bool turns = k == counts_.warmup - 1 && !options_.forward_only && !counts_.all_in_warmup;
    const MaybeUnit gradient = turns && !last() ? MaybeUnit(unit(0, false)) : MaybeUnit();
    schedule_.exchange(outgoing(k, true), {}, prefetch ? MaybeUnit() : incoming(k, true),
                       options_.overlap ? MaybeUnit() : gradient);
    if (turns && options_.overlap) schedule_.exchange({}, {}, {}, gradient);
  }

  void steady_step(int64_t k) {
    const int64_t ahead = k + counts_.warmup;
    forward(ahead);
    if (options_.overlap) {
      schedule_.exchange(outgoing(ahead, true), {}, incoming(ahead, true), {});
      backward(k);
      schedule_.exchange({}, outgoing(k, false), {}, incoming(k, false));
    } else {
      backward(k);
      schedule_.exchange(outgoing(ahead, true), outgoing(k, false), incoming(ahead, true), incoming(k, false));
    }
  }

  void flush_step(int64_t k) {
    const bool prefetch = options_.prefetch && !last();
    if (prefetch) schedule_.exchange({}, {}, {}, incoming(k, false));
    backward(k);
    schedule_.exchange({}, outgoing(k, false), {}, prefetch ? MaybeUnit() : incoming(k, false));
  }

  void finish() {
    schedule_.release_gradients();
    if (sync_) {
      for (int32_t chunk = 0; chunk <= last_chunk_; ++chunk) reduce(chunk);
    }
    schedule_.finalize();
  }

  const PipelineOptions& options_;
  const int64_t rank_;
  const int32_t last_chunk_;
  const WarmupCounts counts_;
  const std::vector<PipelineUnit> table_;
  const bool sync_;
  std::set<int32_t> reduced_;
  ScheduleBuilder schedule_;
};

}  // namespace

PipelineSchedule interleaved(const PipelineOptions& options, int64_t rank) {
  return Interleaved(options, rank).build();
}

}  // namespace hexad::modeling::layout
