#include "modeling/layout/schedule_clock.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "modeling/error.hpp"

namespace hexad::modeling::layout {
namespace {

using Kind = PipelineEvent::Kind;
using Time = std::optional<double>;  // absent: not yet

// Messages from one rank to a neighbour in one direction, in order.
struct Channel {
  std::vector<double> sent, received;  // when the n-th was posted
  std::vector<PipelineUnit> labels;    // of the n-th send, as the receiver calls it
};

class Replay {
 public:
  Replay(const std::vector<PipelineSchedule>& schedules, const ClockOptions& options)
      : schedules_(schedules), options_(options), ranks_(static_cast<int64_t>(schedules.size())) {
    at_.resize(ranks_);
    channels_[0].resize(ranks_);
    channels_[1].resize(ranks_);
    for (const PipelineSchedule& schedule : schedules) {
      for (const PipelineEvent& event : schedule) last_chunk_ = std::max(last_chunk_, event.unit.chunk);
    }
  }

  PipelineTime run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t rank = 0; rank < ranks_; ++rank) {
        while (step(rank)) moved = true;
      }
    }
    PipelineTime time;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      if (at_[rank].event < schedules_[rank].size()) report_deadlock();
      time.ranks.push_back({at_[rank].busy, at_[rank].clock});
      time.makespan = std::max(time.makespan, at_[rank].clock);
    }
    return time;
  }

 private:
  struct Position {
    size_t event = 0;
    bool posted = false;  // the exchange at `event` was issued, and waits
    double clock = 0, busy = 0;
    // The message that brings a unit's input: [forward][unit] -> place in the channel.
    std::map<std::pair<int32_t, int32_t>, size_t> inputs[2];
  };

  // The channel into `rank`; activations come from the previous rank, gradients from the next.
  Channel& into(int64_t rank, bool activations) { return channels_[activations][rank]; }
  int64_t neighbour(int64_t rank, bool next) const { return (rank + (next ? 1 : ranks_ - 1)) % ranks_; }

  // Does the next event of `rank`, if it can end.
  bool step(int64_t rank) {
    Position& at = at_[rank];
    if (at.event == schedules_[rank].size()) return false;
    const PipelineEvent& event = schedules_[rank][at.event];
    Time end = at.clock;
    if (event.kind == Kind::exchange) {
      if (!at.posted) post(rank, event);
      end = finish_exchange(rank, event);
    } else if (event.kind == Kind::forward || event.kind == Kind::backward) {
      end = compute(rank, event);
    }
    if (!end) return false;
    at.clock = *end;
    at.posted = false;
    ++at.event;
    return true;
  }

  void post(int64_t rank, const PipelineEvent& event) {
    Position& at = at_[rank];
    at.posted = true;
    const auto send = [&](const std::optional<PipelineUnit>& unit, bool activations) {
      if (!unit) return;
      PipelineUnit label = *unit;
      const bool wraps = activations ? rank == ranks_ - 1 : rank == 0;
      if (wraps) label.chunk += activations ? 1 : -1;
      Channel& channel = into(neighbour(rank, activations), activations);
      channel.sent.push_back(at.clock);
      channel.labels.push_back(label);
    };
    const auto receive = [&](const std::optional<PipelineUnit>& unit, bool activations) {
      if (!unit) return;
      Channel& channel = into(rank, activations);
      at.inputs[activations][{unit->chunk, unit->microbatch}] = channel.received.size();
      channel.received.push_back(at.clock);
    };
    send(event.send_next, true);
    send(event.send_prev, false);
    receive(event.recv_prev, true);
    receive(event.recv_next, false);
  }

  Time arrival(int64_t rank, const PipelineUnit& unit, bool activations) {
    const Channel& channel = into(rank, activations);
    const size_t n = at_[rank].inputs[activations].at({unit.chunk, unit.microbatch});
    if (n >= channel.sent.size()) return {};
    if (channel.labels[n] != unit) {
      fail("pipeline rank {}: receives (chunk {}, microbatch {}) but the message is (chunk {}, microbatch {})", rank,
           unit.chunk, unit.microbatch, channel.labels[n].chunk, channel.labels[n].microbatch);
    }
    return std::max(channel.sent[n], channel.received[n]) + options_.transfer;
  }

  // When the latest send into `receiver` has room: the receive of the message `capacity` places before it was posted.
  Time room(int64_t receiver, bool activations) {
    const Channel& channel = into(receiver, activations);
    const auto n =
        static_cast<int64_t>(channel.sent.size()) - 1 - options_.channel_capacity.value_or(channel.sent.size());
    if (n < 0) return channel.sent.back();
    if (n >= static_cast<int64_t>(channel.received.size())) return {};
    return std::max(channel.sent.back(), channel.received[n]);
  }

  Time finish_exchange(int64_t rank, const PipelineEvent& event) {
    Time end = at_[rank].clock;
    const auto wait = [&](Time other) { end = end && other ? Time(std::max(*end, *other)) : Time(); };
    if (event.send_next) wait(room(neighbour(rank, true), true));
    if (event.send_prev) wait(room(neighbour(rank, false), false));
    if (options_.overlap) return end;
    if (event.recv_prev) wait(arrival(rank, *event.recv_prev, true));
    if (event.recv_next) wait(arrival(rank, *event.recv_next, false));
    return end;
  }

  Time compute(int64_t rank, const PipelineEvent& event) {
    Position& at = at_[rank];
    const bool forward = event.kind == Kind::forward;
    const PipelineUnit& unit = event.unit;
    Time begin = at.clock;
    const bool source = forward ? rank == 0 && unit.chunk == 0 : rank == ranks_ - 1 && unit.chunk == last_chunk_;
    if (!source) {
      const auto& inputs = at.inputs[forward];
      if (!inputs.contains({unit.chunk, unit.microbatch})) {
        fail("pipeline rank {}: {} without its input", rank, describe(event));
      }
      const Time arrived = arrival(rank, unit, forward);
      if (!arrived) return {};
      begin = std::max(*begin, *arrived);
    }
    const double duration = forward ? options_.forward : options_.backward;
    at.busy += duration;
    return *begin + duration;
  }

  [[noreturn]] void report_deadlock() const {
    std::string text;
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      if (at_[rank].event == schedules_[rank].size()) continue;
      text += fmt::format("{}rank {} waits in event {}, {}", text.empty() ? "" : "; ", rank, at_[rank].event,
                          describe(schedules_[rank][at_[rank].event]));
    }
    fail("pipeline schedules deadlock: {}", text);
  }

  const std::vector<PipelineSchedule>& schedules_;
  const ClockOptions& options_;
  const int64_t ranks_;
  int32_t last_chunk_ = 0;
  std::vector<Position> at_;
  std::vector<Channel> channels_[2];  // [activations][receiver]
};

}  // namespace

PipelineTime run_on_clock(const std::vector<PipelineSchedule>& schedules, const ClockOptions& options) {
  return Replay(schedules, options).run();
}

double bubble_fraction(const PipelineOptions& options) {
  return static_cast<double>(options.ranks - 1) /
         static_cast<double>(options.chunks.value_or(1) * options.microbatches);
}

}  // namespace hexad::modeling::layout
