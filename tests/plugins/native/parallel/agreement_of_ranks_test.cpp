// Ranks of a replica end an update, or a poll that is called off, alike and at once.
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "plugins/native/parallel/agreement.hpp"
#include "plugins/native/parallel/replica.hpp"
#include "tests/plugins/native/support/ranks.hpp"

using namespace native_test;
using namespace hexad::native;
using rank_process::run;

namespace {

// Far below the group's timeout.
constexpr double kAtOnce = 15;

struct Stopwatch {
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  ~Stopwatch() { CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < kAtOnce); }
};

nlohmann::json sizes() {
  return {{"num_attention_heads", 8}, {"num_key_value_heads", 4}, {"head_dim", 6}, {"intermediate_size", 60}};
}

// A generator of this rank's replica beside one that is alone.
struct Both {
  TinyModel model{"qwen2", true, sizes()};
  Weights other = random_weights(model.config, 8);
  Harness one, many;
  explicit Both(int64_t ranks) : one(tight(model)), many(shared_by(tight(model), model.config, ranks)) {}

  void check_equal() {
    const std::vector<Ask> asks = groups_of_samples(3, 3);
    check_same(many.run(asks), one.run(asks));
    CHECK(reported_sums(many) == reported_sums(one));
  }
};

constexpr const char* kGroup = "group 'tp.generator0' of ranks [0, 1]";

void together(const Rank& rank) {
  become(rank);
  const TinyModel model("llama", true, sizes());
  Harness generator(tight(model));
  const Replica replica = make_replica(generator.service(), rank.world);
  const Agreement agreement(replica, replica.aside());
  const std::string group = kGroup;
  int ran = 0;
  agreement.together([&] { ++ran; });
  CHECK(ran == 1);
  const Stopwatch watch;
  CHECK(refusal(HEXAD_RESOURCE_EXHAUSTED, [&] {
          agreement.together([&] {
            if (rank.rank == 1) TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory on rank 1");
          });
        }) == "rank 1 of " + group + ": no memory on rank 1");
  CHECK(refusal(HEXAD_UNIMPLEMENTED, [&] {
          agreement.together([&] { hexad::sdk::fail(HEXAD_UNIMPLEMENTED, "%s", std::string(900, 'x').c_str()); });
        }) == "rank 0 of " + group + ": " + std::string(900, 'x'));
  // Twice, before anyone listens.
  if (rank.rank == 0) agreement.decline("no"), agreement.decline("not now");
  for (const std::string reason : {"no", "not now"}) {
    if (rank.rank == 0) continue;
    CHECK(refusal(HEXAD_CANCELLED, [&] { agreement.together([] {}); }) == "rank 0 of " + group + ": " + reason);
  }
  agreement.together([&] { ++ran; });
  CHECK(ran == 2);
}

// The update of `weights` as the second rank meets it, which has trouble of a kind.
void troubled_update(Harness& generator, const Weights& weights, const Rank& rank, const std::string& trouble) {
  const std::string victim = "model.layers.1.mlp.up_proj.weight";
  generator->update_begin(generator.service(), 5);
  for (const auto& [name, weight] : weights) {
    const bool here = rank.rank == 1 && name == victim;
    if (here && trouble == "missing") continue;
    if (here && trouble == "called off") return generator->update_end(generator.service(), false);
    generator.send(name, here && trouble == "shape" ? weight.narrow(0, 1, 3) : weight);
  }
  generator->update_end(generator.service(), true);
}

void refused(const Rank& rank) {
  become(rank);
  Both both(rank.world);
  const std::vector<std::pair<std::string, std::string>> troubles = {
      {"missing", "weight update: 1 of 39 weights did not arrive in full: model.layers.1.mlp.up_proj.weight"},
      {"shape",
       "the weight update cannot be committed, a bucket of it was refused: weight update: "
       "model.layers.1.mlp.up_proj.weight: shape [3, 36], the model's is [60, 36]"},
      {"called off", "the weight update was broken off"}};
  for (const auto& [trouble, text] : troubles) {
    CAPTURE(trouble);
    const Stopwatch watch;
    const auto update = [&] { troubled_update(both.many, both.other, rank, trouble); };
    const bool off = trouble == "called off";
    if (off && rank.rank == 1) {
      update();
    } else {
      CHECK(refusal(off ? HEXAD_CANCELLED : HEXAD_FAILED_PRECONDITION, update) ==
            std::string("rank 1 of ") + kGroup + ": " + text);
    }
    both.check_equal();  // the old weights
  }
  both.many.update(both.other, 6), both.one.update(both.other, 6);
  both.check_equal();
}

// Of this process: bytes of address space in use.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

// From now on what this process frees of large blocks leaves its address space at once: the C library else keeps those
// for later, by sizes seen, and what a test means to have no memory for would be given from them.
void keep_no_large_blocks() { REQUIRE(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1); }

// While it lives this process has `bytes` more of address space.
struct LittleMemory {
  rlimit before{};
  explicit LittleMemory(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before);
    const rlimit tight{address_space() + bytes, before.rlim_max};
    setrlimit(RLIMIT_AS, &tight);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before); }
};

// The second rank has no memory for keys and values, before the first pass or after sleep.
void no_cache(const Rank& rank) {
  become(rank);
  keep_no_large_blocks();
  const TinyModel model("qwen2", true, sizes());
  Json section = shared_by(tight(model), model.config, rank.world);
  section["native_cfg"]["kv_cache_gb"] = 0.06;
  Harness generator(section), one(tight(model));
  const std::vector<Ask> asks = groups_of_samples(3, 3);
  for (const std::string when : {"first", "after sleep"}) {
    CAPTURE(when);
    generator.answers.clear();
    generator.submit(asks);
    if (when == "after sleep") generator.poll(0), generator->sleep(generator.service(), 1);
    if (when == "after sleep") generator->wake(generator.service());
    std::optional<LittleMemory> little;
    if (rank.rank == 1) little.emplace(rlim_t{20} << 20);
    const Stopwatch watch;
    const std::string error = refusal(HEXAD_INTERNAL, [&] { generator.poll(1000); });
    little.reset();
    MESSAGE(error);
    CHECK(error.starts_with(std::string("rank 1 of ") + kGroup + ": "));
    CHECK(error.find("can't allocate memory") != std::string::npos);
    check_same(generator.run(), one.run(asks));
  }
}

// The second rank has no memory for what the weights become when they take their place.
void no_memory(const Rank& rank) {
  become(rank);
  keep_no_large_blocks();
  nlohmann::json large = sizes();
  large["vocab_size"] = 300000;  // an embedding of 43 MB
  const TinyModel model("llama", true, large);
  Harness generator(shared_by(tight(model), model.config, rank.world));
  const auto sums = reported_sums(generator);
  generator->sleep(generator.service(), 2);
  generator->wake(generator.service());
  generator->update_begin(generator.service(), 3);
  for (const auto& [name, weight] : model.weights) generator.send(name, weight);
  std::optional<LittleMemory> little;
  if (rank.rank == 1) little.emplace(rlim_t{20} << 20);
  const std::string error = refusal(HEXAD_INTERNAL, [&] { generator->update_end(generator.service(), true); });
  little.reset();
  MESSAGE(error);
  CHECK(error.starts_with(std::string("rank 1 of ") + kGroup + ": "));
  CHECK(error.find("can't allocate memory") != std::string::npos);
  CHECK(reported_sums(generator).empty());  // nobody has any
  generator.update(model.weights, 4);
  CHECK(reported_sums(generator) == sums);
}

// The poll of one rank is cancelled, while they run or wait for work; told once, it ends no later one.
void called_off(const Rank& rank) {
  become(rank);
  Both both(rank.world);
  for (int victim = 0; victim < rank.world; ++victim) {
    for (const bool busy : {false, true}) {
      CAPTURE(victim);
      CAPTURE(busy);
      std::vector<Ask> asks = groups_of_samples(8, 4);
      if (busy) both.many.submit(asks);
      const std::atomic<bool> cancelled{rank.rank == victim};
      both.many.context().cancelled = &cancelled;
      {
        const Stopwatch watch;
        CHECK(refusal(HEXAD_CANCELLED, [&] {
                for (;;) both.many.poll(100000);
              }) == "poll was cancelled");
      }
      both.many.context().cancelled = nullptr;
      if (!busy) continue;
      both.many.run();
      both.one.answers.clear();
      check_same(both.many.answers, both.one.run(asks));
      both.many.answers.clear();
    }
  }
}

constexpr int64_t kTimeoutMs = 3000;

// Polls until an error other than that of cancellation ends it, which comes by the group's timeout.
std::string lost(Harness& generator) {
  const auto began = std::chrono::steady_clock::now();
  const std::string error = refusal(HEXAD_UNAVAILABLE, [&] {
    for (;;) generator.poll(100);
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  MESSAGE(error);
  CHECK(seconds < 2 * double(kTimeoutMs) / 1000 + 4);
  return error;
}

// The poll of one rank is cancelled when the other has left: it has ended, or its host does not poll any more.
void left_alone(const Rank& rank) {
  become(rank, kTimeoutMs);
  const int64_t leaves = rank.argument.starts_with("0") ? 0 : 1;
  const bool busy = rank.argument.find("busy") != std::string::npos, ends = rank.argument.ends_with("ends");
  Both both(rank.world);
  if (busy) both.many.submit(groups_of_samples(8, 4));
  for (int i = 0; i < 5; ++i) both.many.poll(0);
  if (rank.rank == leaves) {
    if (ends) ::_exit(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * kTimeoutMs));
    return;
  }
  const std::atomic<bool> cancelled{true};
  both.many.context().cancelled = &cancelled;
  const std::string error = lost(both.many);
  CHECK(error.find(fmt::format("over {} failed; missing: rank {} (", kGroup, leaves)) != std::string::npos);
}

// Rank 0's host has it sleep, rank 1's polls on, and is cancelled in the end.
void apart(const Rank& rank) {
  become(rank, kTimeoutMs);
  Both both(rank.world);
  if (rank.rank == 0) {
    both.many->sleep(both.many.service(), 1);
    CHECK(lost(both.many).find("missing: rank 1 (") != std::string::npos);
    return;
  }
  const std::atomic<bool> cancelled{true};
  both.many.context().cancelled = &cancelled;
  CHECK(
      lost(both.many) ==
      std::string(kGroup) +
          ": rank 0 of it has begun what comes between two passes (an update, pause, resume, sleep, wake, "
          "flush_cache or weight_layout), and rank 1 was not called so within 3 s: make the same calls on every rank");
}

const bool added = backend_test::add_scenarios({{"together", together},
                                                {"refused", refused},
                                                {"no_cache", no_cache},
                                                {"no_memory", no_memory},
                                                {"called_off", called_off},
                                                {"left_alone", left_alone},
                                                {"apart", apart}});

}  // namespace

TEST_CASE(
    "ranks take a step together, or each has the error of the one that could not; who declines waits for nobody") {
  run("together", 2);
}

TEST_CASE("an update that one rank refuses, or whose host calls it off, is refused by all, who keep the old weights") {
  run("refused", 2);
}

TEST_CASE("where new weights cannot take their place on one rank, none has any until the next update") {
  run("no_memory", 2);
}

TEST_CASE("without memory for keys and values on one rank no rank runs, and all hear which one lacks it") {
  run("no_cache", 2);
}

TEST_CASE("a cancelled poll does not wait longer than the timeout for a rank that has left, and names it") {
  for (const char* how : {"0 idle ends", "1 busy ends", "0 busy stays away", "1 idle stays away"})
    run("left_alone", 2, how);
}

TEST_CASE("a rank whose host does not make the call that the first one's has made ends its poll in time") {
  run("apart", 2);
}

TEST_CASE("a poll that is cancelled on one rank ends so on every rank, and their samples go on in the next") {
  for (const int ranks : {2, 4}) run("called_off", ranks);
}
