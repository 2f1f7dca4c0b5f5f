// Schedules over messages whose time is counted: what a rank waits for, and what it computes meanwhile.
#include "modeling/parallel/stage_links.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <random>

#include "modeling/error.hpp"
#include "modeling/layout/schedule_clock.hpp"
#include "tests/modeling/support/thread_group.hpp"

namespace hexad::modeling {
namespace {

namespace layout = modeling::layout;
using Kind = layout::PipelineEvent::Kind;
using Travels = StageLinks::Kind;

// Messages between the ranks and the ranks' clocks; a rank's clock is its thread's alone.
struct Net {
  struct Message {
    at::Tensor tensor;
    std::optional<double> sent, received;  // when it was posted on either side
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::tuple<int, int, int>, Message> messages;  // from, to, tag
  std::vector<double> clock;
  double transfer = 0;

  template <typename Done>
  Message& await(const std::tuple<int, int, int>& key, std::unique_lock<std::mutex>& lock, const Done& done) {
    const bool came = changed.wait_for(lock, std::chrono::seconds(30), [&] { return done(messages[key]); });
    if (!came) fail("message {} -> {} with tag {} never came", std::get<0>(key), std::get<1>(key), std::get<2>(key));
    return messages[key];
  }
};

class ClockGroup : public c10d::ProcessGroup {
 public:
  ClockGroup(int rank, int size, std::shared_ptr<Net> net) : c10d::ProcessGroup(rank, size), net_(std::move(net)) {
    setDefaultBackend(BackendType::GLOO);
  }

  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    return post({getRank(), to, tag}, tensors[0], false);
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int from, int tag) override {
    return post({from, getRank(), tag}, tensors[0], true);
  }

 private:
  struct Posted : c10d::Work {
    std::shared_ptr<Net> net;
    std::tuple<int, int, int> key;
    at::Tensor into;  // of a receive
    int rank;
    bool wait(std::chrono::milliseconds) override {
      std::unique_lock lock(net->mutex);
      double& clock = net->clock[static_cast<size_t>(rank)];
      if (into.defined()) {
        const Net::Message& message = net->await(key, lock, [](const auto& m) { return m.sent.has_value(); });
        into.copy_(message.tensor);
        clock = std::max(clock, std::max(*message.sent, *message.received) + net->transfer);
      } else {  // a sender is free when its message is being received
        clock = std::max(clock, *net->await(key, lock, [](const auto& m) { return m.received.has_value(); }).received);
      }
      return true;
    }
  };

  c10::intrusive_ptr<c10d::Work> post(std::tuple<int, int, int> key, const at::Tensor& tensor, bool receives) {
    auto work = c10::make_intrusive<Posted>();
    work->net = net_, work->key = key, work->rank = getRank();
    const std::lock_guard lock(net_->mutex);
    Net::Message& message = net_->messages[key];
    const double now = net_->clock[static_cast<size_t>(getRank())];
    if (receives) {
      CHECK(!message.received);
      message.received = now, work->into = tensor;
    } else {
      CHECK(!message.sent);
      message.sent = now, message.tensor = tensor.clone();
    }
    net_->changed.notify_all();
    return work;
  }

  std::shared_ptr<Net> net_;
};

struct Run {
  double makespan = 0;
  std::vector<double> ends;
};

// What a unit sends, so that a message that goes astray is seen.
at::Tensor payload(int64_t stage, int32_t microbatch, Travels kind) {
  return at::full({1 + microbatch % 3, 2}, double(stage * 1000 + microbatch * 2 + (kind == Travels::gradient)));
}

Run run(const layout::PipelineOptions& options, const layout::ClockOptions& times, bool batch) {
  const auto net = std::make_shared<Net>();
  const int ranks = static_cast<int>(options.ranks);
  net->clock.assign(static_cast<size_t>(ranks), 0);
  net->transfer = times.transfer;
  const int64_t stages = options.ranks * options.chunks.value_or(1);
  run_ranks(ranks, [&](int rank) {
    const auto native = c10::make_intrusive<ClockGroup>(rank, ranks, net);
    StageLinks::Options wanted;
    wanted.microbatches = options.microbatches;
    wanted.overlap = options.overlap, wanted.batch = batch;
    wanted.room = [](const layout::PipelineUnit& unit) { return at::full({1 + unit.microbatch % 3, 2}, -1.0); };
    StageLinks links(Group(native.get()), wanted);
    double& clock = net->clock[static_cast<size_t>(rank)];
    for (const layout::PipelineEvent& event : layout::pipeline_schedule(options, rank)) {
      const int64_t stage = event.unit.chunk * options.ranks + rank;
      const bool forward = event.kind == Kind::forward;
      if (event.kind == Kind::exchange) links.exchange(event);
      if (!forward && event.kind != Kind::backward) continue;
      const Travels kind = forward ? Travels::activation : Travels::gradient;
      const at::Tensor input = links.take(kind, event.unit);
      const bool source = forward ? stage == 0 : stage == stages - 1, sink = forward ? stage == stages - 1 : stage == 0;
      REQUIRE(input.defined() != source);
      if (!source) CHECK(at::equal(input, payload(stage, event.unit.microbatch, kind)));
      clock += forward ? times.forward : times.backward;
      if (!sink) links.give(kind, event.unit, payload(stage + (forward ? 1 : -1), event.unit.microbatch, kind));
    }
    links.finish();
  });
  Run result;
  result.ends = net->clock;
  result.makespan = *std::max_element(result.ends.begin(), result.ends.end());
  return result;
}

std::vector<layout::PipelineSchedule> all_ranks(const layout::PipelineOptions& options) {
  std::vector<layout::PipelineSchedule> schedules;
  for (int64_t rank = 0; rank < options.ranks; ++rank) schedules.push_back(layout::pipeline_schedule(options, rank));
  return schedules;
}

}  // namespace

TEST_CASE("stages wait for no more than the schedule's clock says, whatever way their messages go") {
  std::mt19937 random(3);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 40; ++trial) {
    layout::PipelineOptions options;
    options.ranks = between(2, 4);
    options.forward_only = between(0, 3) == 0;
    if (between(0, 3) > 0) options.chunks = between(1, 3);
    options.microbatches = options.ranks * between(1, 3);
    options.overlap = options.chunks && between(0, 2) > 0;
    const bool batch = !options.overlap && between(0, 1);
    const double transfer = 0.25 * double(between(0, 4));
    INFO("ranks " << options.ranks << " chunks " << options.chunks.value_or(0) << " microbatches "
                  << options.microbatches << " overlap " << options.overlap << " batch " << batch << " transfer "
                  << transfer << " forward only " << options.forward_only);
    layout::ClockOptions times;
    times.transfer = transfer, times.overlap = options.overlap;
    // With overlap one message of a kind may wait to be received while the rank goes on.
    times.channel_capacity = options.overlap ? 1 : 0;
    const Run got = run(options, times, batch);
    const layout::PipelineTime want = layout::run_on_clock(all_ranks(options), times);
    for (int64_t rank = 0; rank < options.ranks; ++rank)
      CHECK(got.ends[static_cast<size_t>(rank)] >= want.ranks[static_cast<size_t>(rank)].end);
    CHECK(got.makespan == want.makespan);
  }
}

TEST_CASE("with overlap, messages that take as long as a forward cost the interleaved pipeline less") {
  layout::PipelineOptions options;
  options.ranks = 4, options.chunks = 2, options.microbatches = 16;
  layout::ClockOptions times;
  times.transfer = 1;
  const double busy = 2 * 16 * 3.0, bubble = 3 * 3.0;
  const Run waiting = run(options, times, /*batch=*/true);
  options.overlap = times.overlap = true;
  const Run overlapped = run(options, times, /*batch=*/false);
  INFO("ideal " << busy + bubble << ", waiting " << waiting.makespan << ", overlapped " << overlapped.makespan);
  CHECK(overlapped.makespan < waiting.makespan);
  // Every unit of the steady state finds its input there: what is left is warm-up and flush.
  CHECK(overlapped.makespan - busy < (waiting.makespan - busy) / 2);
}

TEST_CASE("messages that overlap are not sent in batches") {
  StageLinks::Options options;
  options.overlap = options.batch = true;
  CHECK_THROWS_WITH_AS(StageLinks({}, options), "pipeline: messages that overlap are not sent in batches", Error);
}

// Two ranks serve what they post to each other one after another (NCCL): in the same order, one sends what the other
// receives. Tested over the order in which the ranks post, whenever that is.
TEST_CASE("neighbours post their messages to each other in the same order") {
  struct Recorder : c10d::ProcessGroup {
    using ProcessGroup::ProcessGroup;
    struct Done : c10d::Work {
      bool wait(std::chrono::milliseconds) override { return true; }
    };
    std::map<int, std::vector<std::pair<bool, int>>> posted;  // by peer: sends?, tag
    c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>&, int to, int tag) override {
      posted[to].push_back({true, tag});
      return c10::make_intrusive<Done>();
    }
    c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>&, int from, int tag) override {
      posted[from].push_back({false, tag});
      return c10::make_intrusive<Done>();
    }
  };
  for (const int ranks : {2, 3, 4, 5}) {
    for (const int64_t chunks : {0, 2, 3}) {
      for (const bool overlap : {false, true}) {
        if (overlap && chunks == 0) continue;
        layout::PipelineOptions options;
        options.ranks = ranks, options.microbatches = 3 * ranks, options.overlap = overlap;
        if (chunks > 0) options.chunks = chunks;
        INFO("ranks " << ranks << " chunks " << chunks << " overlap " << overlap);
        std::vector<c10::intrusive_ptr<Recorder>> groups;
        for (int rank = 0; rank < ranks; ++rank) {
          groups.push_back(c10::make_intrusive<Recorder>(rank, ranks));
          StageLinks::Options wanted;
          wanted.microbatches = options.microbatches, wanted.overlap = overlap, wanted.batch = false;
          wanted.room = [](const layout::PipelineUnit&) { return at::empty({1}); };
          StageLinks links(Group(groups.back().get()), wanted);
          for (const layout::PipelineEvent& event : layout::pipeline_schedule(options, rank)) {
            if (event.kind == Kind::exchange) links.exchange(event);
            if (event.kind == Kind::forward) links.give(Travels::activation, event.unit, at::empty({1}));
            if (event.kind == Kind::backward) links.give(Travels::gradient, event.unit, at::empty({1}));
          }
        }
        for (int rank = 0; rank < ranks; ++rank) {
          for (auto& [peer, mine] : groups[static_cast<size_t>(rank)]->posted) {
            auto theirs = groups[static_cast<size_t>(peer)]->posted[rank];
            for (auto& message : theirs) message.first = !message.first;
            CHECK(mine == theirs);
          }
        }
      }
    }
  }
}

}  // namespace hexad::modeling
