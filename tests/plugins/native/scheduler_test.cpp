#include "plugins/native/schedule/scheduler.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <set>

using namespace hexad::native;

namespace {

// A scheduler run without a model: what each block position holds is written down and checked instead.
struct Simulation {
  explicit Simulation(const SchedulerOptions& options)
      : scheduler(options), cells(options.num_blocks * options.block_size, -1), block_size(options.block_size) {}

  Sequence& submit(uint64_t group, std::vector<int32_t> prompt, int64_t length) {
    auto sequence = std::make_unique<Sequence>();
    sequence->request.group = group;
    sequence->request.prompt = sequence->tokens = std::move(prompt);
    sequence->request.max_new_tokens = length;
    sequence->arrival = sequences.size();
    scheduler.add(sequence.get());
    sequences.push_back(std::move(sequence));
    return *sequences.back();
  }

  int64_t& cell(const Sequence& s, int64_t position) {
    return cells[s.blocks[position / block_size] * block_size + position % block_size];
  }
  // What a cell holds after a token was run: the token and the sequence of tokens before it, hashed.
  static int64_t fingerprint(const Sequence& s, int64_t position) {
    uint64_t hash = 1469598103934665603ull;
    for (int64_t i = 0; i <= position; ++i) hash = (hash ^ uint64_t(s.tokens[i])) * 1099511628211ull;
    return int64_t(hash >> 1);
  }

  // Returns the rows of the pass, 0 when nothing ran.
  int64_t step(std::mt19937_64& rng) {
    const Step step = scheduler.schedule();
    for (const BlockCopy& copy : step.copies) {
      for (int64_t i = 0; i < block_size; ++i) cells[copy.to * block_size + i] = cells[copy.from * block_size + i];
    }
    int64_t rows = 0;
    std::set<const Sequence*> seen;
    for (const Chunk& chunk : step.chunks) {
      const Sequence& s = *chunk.sequence;
      REQUIRE(seen.insert(&s).second);
      REQUIRE(chunk.start == s.computed);
      REQUIRE(chunk.start + chunk.count <= s.size());
      REQUIRE(chunk.samplers.empty() == (chunk.start + chunk.count < s.size()));
      rows += chunk.count;
      for (int64_t i = chunk.start; i < chunk.start + chunk.count; ++i) {
        REQUIRE(scheduler.pool().references(s.blocks[i / block_size]) ==
                1 + int(chunk.samplers.size() > 1) * int(chunk.samplers.size() - 1));
        cell(s, i) = fingerprint(s, i);
      }
    }
    for (const Chunk& chunk : step.chunks) {  // what attention would read
      for (int64_t i = 0; i < chunk.start + chunk.count; ++i)
        REQUIRE(cell(*chunk.sequence, i) == fingerprint(*chunk.sequence, i));
    }
    scheduler.commit(step);
    for (const Chunk& chunk : step.chunks) {
      for (Sequence* s : chunk.samplers) {
        s->tokens.push_back(int32_t(rng() % 1000));
        if (s->sampled() >= s->request.max_new_tokens) scheduler.remove(s), ++ended;
      }
    }
    return rows;
  }

  Scheduler scheduler;
  std::vector<int64_t> cells;
  int64_t block_size;
  std::vector<std::unique_ptr<Sequence>> sequences;
  int64_t ended = 0;
};

std::vector<int32_t> random_prompt(std::mt19937_64& rng, int64_t size) {
  std::vector<int32_t> prompt(size);
  for (int32_t& token : prompt) token = int32_t(rng() % 1000);
  return prompt;
}

}  // namespace

TEST_CASE("random runs: every request ends, no block leaks, every query reads its own tokens") {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    const auto pick = [&](int64_t low, int64_t high) { return low + int64_t(rng() % uint64_t(high - low + 1)); };
    const SchedulerOptions options{.block_size = pick(1, 8),
                                   .num_blocks = pick(12, 40),
                                   .max_sequences = pick(1, 8),
                                   .max_tokens = pick(1, 24),
                                   .chunked_prefill = pick(0, 3) > 0,
                                   .share_prompts = pick(0, 3) > 0};
    Simulation run(options);
    const int64_t capacity = options.num_blocks * options.block_size;
    int64_t steps = 0, cancelled = 0;
    for (int group = 0; group < 4; ++group) {
      const std::vector<int32_t> prompt = random_prompt(rng, pick(1, std::min<int64_t>(capacity / 2, 30)));
      for (int64_t sample = pick(1, 5); sample > 0; --sample) {
        run.submit(group, prompt, pick(1, std::min<int64_t>(capacity / 2, 20)));
        if (pick(0, 3) == 0) steps += run.step(rng) > 0;
      }
    }
    while (!run.scheduler.idle()) {
      REQUIRE(run.step(rng) > 0);
      REQUIRE(++steps < 20000);
      if (pick(0, 15) == 0) {
        Sequence& victim = *run.sequences[rng() % run.sequences.size()];
        if (victim.sampled() < victim.request.max_new_tokens && victim.request.max_new_tokens > 0) {
          run.scheduler.remove(&victim);
          victim.request.max_new_tokens = 0;
          ++cancelled;
        }
      }
      if (pick(0, 30) == 0) run.scheduler.flush_prompts();
      if (pick(0, 60) == 0) run.scheduler.preempt_all();
    }
    CHECK(run.ended + cancelled == int64_t(run.sequences.size()));
    run.scheduler.flush_prompts();
    CHECK(run.scheduler.pool().free() == options.num_blocks);
  }
}

TEST_CASE("a group's prompt is computed once, and all its samples draw from the same row") {
  std::mt19937_64 rng(1);
  Simulation run({.block_size = 4, .num_blocks = 64, .max_sequences = 16, .max_tokens = 100});
  const std::vector<int32_t> prompt = random_prompt(rng, 30);
  for (int i = 0; i < 8; ++i) run.submit(7, prompt, 5);
  CHECK(run.step(rng) == 30);
  CHECK(run.scheduler.running() == 8);
  CHECK(run.step(rng) == 8);
  // Seven full blocks shared; the last one copied by each (the shared prompt keeps the original).
  CHECK(64 - run.scheduler.pool().free() == 7 + 1 + 8);
  run.submit(7, prompt, 5);  // a late sample runs only its last prompt token
  CHECK(run.step(rng) == 9);
  run.submit(8, prompt, 5);  // another group shares nothing
  CHECK(run.step(rng) == 9 + 30);
}

TEST_CASE("prompts are cut to the token budget beside decodes, or kept whole") {
  std::mt19937_64 rng(2);
  for (const bool chunked : {true, false}) {
    Simulation run(
        {.block_size = 4, .num_blocks = 64, .max_sequences = 4, .max_tokens = 10, .chunked_prefill = chunked});
    run.submit(1, random_prompt(rng, 8), 50);
    CHECK(run.step(rng) == 8);
    run.submit(2, random_prompt(rng, 25), 5);
    if (chunked) {
      for (int i = 0; i < 2; ++i) CHECK(run.step(rng) == 10);
      CHECK(run.step(rng) == 1 + 7);
    } else {
      CHECK(run.step(rng) == 1);  // it waits until it can run alone
    }
  }
}

TEST_CASE("the first to arrive is never preempted") {
  std::mt19937_64 rng(4);
  Simulation run({.block_size = 2, .num_blocks = 20, .max_sequences = 8, .max_tokens = 64});
  std::vector<Sequence*> all;
  for (uint64_t i = 0; i < 6; ++i) all.push_back(&run.submit(i, random_prompt(rng, 4), 30));
  std::vector<size_t> order;
  std::set<size_t> ended;
  while (!run.scheduler.idle()) {
    run.step(rng);
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i]->sampled() == 30 && ended.insert(i).second) order.push_back(i);
    }
  }
  CHECK(all[0]->preemptions == 0);
  CHECK(all[5]->preemptions > 0);
  CHECK(order == std::vector<size_t>{0, 1, 2, 3, 4, 5});
}
