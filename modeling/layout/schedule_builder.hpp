// What the three schedules share: the list under construction and whether gradients are held back.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "modeling/layout/pipeline_schedule.hpp"

namespace hexad::modeling::layout {

class ScheduleBuilder {
 public:
  using Kind = PipelineEvent::Kind;
  using MaybeUnit = std::optional<PipelineUnit>;

  void forward(PipelineUnit unit, int64_t position, std::optional<bool> recompute) {
    events_.push_back({Kind::forward, unit, static_cast<int32_t>(position), recompute});
  }
  void backward(PipelineUnit unit, int64_t position) {
    events_.push_back({Kind::backward, unit, static_cast<int32_t>(position)});
  }
  void exchange(const MaybeUnit& send_next, const MaybeUnit& send_prev, const MaybeUnit& recv_prev,
                const MaybeUnit& recv_next) {
    PipelineEvent event{Kind::exchange};
    event.send_next = send_next;
    event.send_prev = send_prev;
    event.recv_prev = recv_prev;
    event.recv_next = recv_next;
    events_.push_back(event);
  }
  void gather_parameters(int32_t chunk) { events_.push_back({Kind::gather_parameters, {chunk, 0}}); }
  void reduce_gradients(int32_t chunk) { events_.push_back({Kind::reduce_gradients, {chunk, 0}}); }
  void hold_gradients() {
    if (!std::exchange(held_, true)) events_.push_back({Kind::hold_gradients});
  }
  void release_gradients() {
    if (std::exchange(held_, false)) events_.push_back({Kind::release_gradients});
  }
  void finalize() { events_.push_back({Kind::finalize}); }

  bool held() const { return held_; }
  PipelineSchedule take() { return std::move(events_); }

 private:
  PipelineSchedule events_;
  bool held_ = false;
};

// One chunk a rank, and several. `options` were checked.
PipelineSchedule one_f_one_b(const PipelineOptions& options, int64_t rank);
PipelineSchedule interleaved(const PipelineOptions& options, int64_t rank);

}  // namespace hexad::modeling::layout
