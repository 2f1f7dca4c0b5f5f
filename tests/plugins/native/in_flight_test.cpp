// Two passes in flight: what is drawn must be what is drawn one pass at a time, bit for bit, whatever ends, stops or
// loses its place meanwhile. The CPU's executor behind a queue stands for a GPU.
#include <deque>

#include "plugins/native/engine.hpp"
#include "tests/plugins/native/support/tight.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

// Draws become known to the engine a pass late; until then it hands in placeholders, which are resolved here.
class LateExecutor : public Executor {
 public:
  explicit LateExecutor(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}
  void set_weights(WeightMap weights) override {
    CHECK(passes_.empty());
    inner_->set_weights(std::move(weights));
  }
  WeightMap weights() const override { return inner_->weights(); }
  at::Tensor forward(const Step& step, KvCache& cache) override { return inner_->forward(step, cache); }
  void start(const Step& step, KvCache& cache) override {
    std::vector<std::pair<Sequence*, int32_t>> unknown;
    for (const Chunk& chunk : step.chunks) {
      int32_t& last = chunk.sequence->tokens.back();
      for (size_t i = 0; i + 1 < chunk.sequence->tokens.size(); ++i) CHECK(chunk.sequence->tokens[i] >= 0);
      if (last >= 0) continue;
      unknown.emplace_back(chunk.sequence, last);
      last = last_.at(size_t(~last)).token;
    }
    resolved += unknown.size();
    inner_->start(step, cache);
    last_ = inner_->finish();
    passes_.push_back(last_);
    CHECK(passes_.size() <= 2);
    for (const auto& [sequence, token] : unknown) sequence->tokens.back() = token;
  }
  std::vector<Draw> finish() override {
    std::vector<Draw> draws = passes_.front();
    passes_.pop_front();
    return draws;
  }
  int64_t passes_in_flight() const override { return 2; }

  static inline size_t resolved = 0;

 private:
  std::unique_ptr<Executor> inner_;
  std::vector<Draw> last_;
  std::deque<std::vector<Draw>> passes_;
};

// Its passes go wrong, when they start or when they are waited for.
class FailingExecutor : public Executor {
 public:
  explicit FailingExecutor(bool late) : late_(late) {}
  void set_weights(WeightMap) override {}
  WeightMap weights() const override { return {}; }
  at::Tensor forward(const Step&, KvCache&) override { return {}; }
  void start(const Step&, KvCache&) override {
    if (!late_) throw std::runtime_error("no memory for the pass");
  }
  std::vector<Draw> finish() override { throw std::runtime_error("no memory for the pass"); }

 private:
  bool late_;
};

struct Outcome {
  int32_t finish;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  bool operator==(const Outcome&) const = default;
};

struct Run {
  std::map<uint64_t, Outcome> outcomes;
  int64_t preemptions = 0, passes = 0;
};

// `disturb` is called before every pass with its number.
Run run(
    const TinyModel& model, const std::vector<Ask>& asks, bool late,
    const std::function<void(Engine&, int64_t)>& disturb = [](Engine&, int64_t) {}) {
  const SchedulerOptions schedule{.block_size = 3, .num_blocks = 60, .max_sequences = 9, .max_tokens = 13};
  std::unique_ptr<Executor> executor = make_cpu_executor(model.config, {at::kFloat, at::kCPU, false, 512});
  executor->set_weights(model.weights);
  if (late) executor = std::make_unique<LateExecutor>(std::move(executor));
  Engine engine({schedule, 512, {0}}, std::move(executor), KvCache(model.config, 3, 60, at::kFloat, at::kCPU), true);
  for (const Ask& ask : asks) {
    auto sequence = std::make_unique<Sequence>();
    Request& request = sequence->request;
    request.id = ask.id, request.group = ask.group, request.seed = ask.seed, request.prompt = ask.prompt;
    request.max_new_tokens = ask.max_new_tokens, request.stop_token_ids = ask.stop_token_ids;
    request.stop_strings = ask.stop_strings, request.ignore_eos = false;
    sequence->tokens = ask.prompt;
    engine.add(std::move(sequence));
  }
  Run result;
  while (!engine.idle()) {
    disturb(engine, result.passes);
    if (engine.awake()) engine.step([](const int32_t* ids, int64_t count) { return letters({ids, size_t(count)}); });
    for (const auto& event : engine.take_events())
      result.outcomes[event->completion.id] = {event->completion.finish, event->tokens, event->logprobs};
    REQUIRE(++result.passes < 100000);
  }
  result.preemptions = engine.preemptions();
  return result;
}

std::vector<Ask> asks_with_stops() {
  std::vector<Ask> asks = groups_of_samples(8, 4);
  for (Ask& ask : asks) {
    ask.max_new_tokens = 5 + int64_t(ask.id * 7 % 40);
    if (ask.id % 3 == 0) ask.stop_token_ids = {5, 17, 40, 41, 42};
    if (ask.id % 3 == 1) ask.stop_strings = {"Bc", "d"};
  }
  return asks;
}

}  // namespace

TEST_CASE("two passes in flight draw what one at a time draws, through stops, lengths and preemption") {
  for (const std::string family : {"llama", "qwen2"}) {
    CAPTURE(family);
    const TinyModel model(family);
    const std::vector<Ask> asks = asks_with_stops();
    LateExecutor::resolved = 0;
    const Run one = run(model, asks, false), two = run(model, asks, true);
    CHECK(one.preemptions > 0);
    CHECK(two.preemptions > 0);
    CHECK(LateExecutor::resolved > 100);
    REQUIRE(one.outcomes.size() == asks.size());
    CHECK((one.outcomes == two.outcomes));
    size_t stopped = 0, long_enough = 0;
    for (const auto& [id, outcome] : two.outcomes) {
      stopped += outcome.finish == HEXAD_FINISH_STOP, long_enough += outcome.finish == HEXAD_FINISH_LENGTH;
      CHECK(outcome.tokens.size() == outcome.logprobs.size());
    }
    CHECK(stopped > 3);
    CHECK(long_enough > 3);
  }
}

TEST_CASE("a pass that fails ends its sequences, but among the ranks of a replica the generator") {
  const TinyModel model("llama");
  const SchedulerOptions schedule{.block_size = 3, .num_blocks = 60, .max_sequences = 9, .max_tokens = 13};
  const auto detokenize = [](const int32_t* ids, int64_t count) { return letters({ids, size_t(count)}); };
  for (const bool late : {false, true}) {
    for (const std::string replica : {"", "group 'tp.generator0' of ranks [0, 1]"}) {
      CAPTURE(late);
      CAPTURE(replica);
      Engine engine({schedule, 512, {0}, replica}, std::make_unique<FailingExecutor>(late),
                    KvCache(model.config, 3, 60, at::kFloat, at::kCPU), true);
      auto sequence = std::make_unique<Sequence>();
      sequence->request.id = 1, sequence->request.prompt = {1, 2, 3}, sequence->request.max_new_tokens = 4;
      sequence->tokens = sequence->request.prompt;
      engine.add(std::move(sequence));
      const auto steps = [&] {
        for (int i = 0; i < 4 && !engine.idle(); ++i) engine.step(detokenize);
      };
      if (replica.empty()) {
        steps();
        const auto events = engine.take_events();
        REQUIRE(events.size() == 1);
        CHECK(events[0]->completion.finish == HEXAD_FINISH_ERROR);
        CHECK(engine.idle());
      } else {
        CHECK_THROWS_WITH_AS(steps(), doctest::Contains("failed on one rank of group 'tp.generator0'"), c10::DistError);
      }
    }
  }
}

TEST_CASE("so they do through sleep, the same weights again, and samples that are cancelled in flight") {
  const TinyModel model("llama");
  const std::vector<Ask> asks = asks_with_stops();
  const Run one = run(model, asks, false);
  const Run two = run(model, asks, true, [&](Engine& engine, int64_t pass) {
    if (pass == 7) engine.cancel(2), engine.cancel(20), engine.cancel(999);
    if (pass == 11) engine.sleep(false);
    if (pass == 13) engine.wake();
    if (pass == 20) engine.set_weights(model.weights, 4);
    if (pass == 25) engine.sleep(true);
    if (pass == 26) engine.wake(), engine.set_weights(model.weights, 5);
  });
  REQUIRE(two.outcomes.size() == asks.size());
  for (const auto& [id, outcome] : two.outcomes) {
    if (id != 2 && id != 20) CHECK((outcome == one.outcomes.at(id)));
  }
  for (const uint64_t id : {2, 20}) {
    const Outcome &got = two.outcomes.at(id), &whole = one.outcomes.at(id);
    CHECK(got.finish == HEXAD_FINISH_ABORT);
    CHECK(got.tokens.size() == got.logprobs.size());
    REQUIRE(got.tokens.size() <= whole.tokens.size());
    CHECK(std::equal(got.tokens.begin(), got.tokens.end(), whole.tokens.begin()));
  }
}
