#include <csignal>
#include <cstring>

#include "tests/runtime/rank_process.hpp"
#include "tests/runtime/runtime_library.hpp"
#include "tests/support/listening.hpp"

using rank_process::Rank;
using runtime_test::check_ok;
using runtime_test::runtime;
using runtime_test::Tensor;

namespace {

constexpr int64_t kTimeoutMs = 30000;

hexad_comm* started_world(const Rank& rank) {
  const hexad_runtime_options options = runtime_test::options(rank, kTimeoutMs);
  check_ok(runtime().start(&options));
  hexad_comm* world = nullptr;
  check_ok(runtime().comm_axis("world", &world));
  REQUIRE(world);
  CHECK(runtime().comm_rank(world) == rank.rank);
  CHECK(runtime().comm_size(world) == rank.world);
  return world;
}

void collectives(const Rank& rank) {
  hexad_comm* world = started_world(rank);
  const int n = rank.world, r = rank.rank;
  Tensor<float> sum({1.0f * static_cast<float>(r), 2.0f});
  check_ok(runtime().all_reduce(world, &sum.dl, HEXAD_OP_SUM));
  CHECK(sum.data == std::vector<float>{static_cast<float>(n * (n - 1) / 2), static_cast<float>(2 * n)});
  Tensor<int64_t> largest({r});
  check_ok(runtime().all_reduce(world, &largest.dl, HEXAD_OP_MAX));
  CHECK(largest.data[0] == n - 1);
  Tensor<double> smallest({r + 0.5});
  check_ok(runtime().all_reduce(world, &smallest.dl, HEXAD_OP_MIN));
  CHECK(smallest.data[0] == 0.5);

  Tensor<int64_t> part({10 * r, 10 * r + 1}), whole(std::vector<int64_t>(2 * static_cast<size_t>(n)));
  check_ok(runtime().all_gather(world, &part.dl, &whole.dl));
  for (int i = 0; i < n; ++i) CHECK(whole.data[2 * static_cast<size_t>(i) + 1] == 10 * i + 1);

  std::vector<float> rows;
  for (int i = 0; i < n; ++i) rows.insert(rows.end(), {static_cast<float>(i), static_cast<float>(r)});
  Tensor<float> scattered({0, 0}), source(rows);
  check_ok(runtime().reduce_scatter(world, &source.dl, &scattered.dl));
  CHECK(scattered.data == std::vector<float>{static_cast<float>(n * r), static_cast<float>(n * (n - 1) / 2)});

  Tensor<float> sent({static_cast<float>(r)});
  check_ok(runtime().broadcast(world, &sent.dl, n - 1));
  CHECK(sent.data[0] == static_cast<float>(n - 1));
  check_ok(runtime().barrier(world));
  runtime().stop();
}

void wrong_arguments(const Rank& rank) {
  hexad_comm* world = started_world(rank);
  Tensor<float> one({1}), three({1, 2, 3});
  CHECK(runtime().all_gather(world, &one.dl, &three.dl) == HEXAD_INVALID_ARGUMENT);
  CHECK(std::string(runtime().error()).find("all_gather over \"world\", rank") == 0);
  CHECK(runtime().broadcast(world, &one.dl, 7) == HEXAD_INVALID_ARGUMENT);
  CHECK(std::string(runtime().error()).find("root 7 is outside the group of 2") != std::string::npos);
  int64_t strides[1] = {2};
  three.dl.strides = strides;
  CHECK(runtime().all_reduce(world, &three.dl, HEXAD_OP_SUM) == HEXAD_INVALID_ARGUMENT);
  CHECK(std::string(runtime().error()).find("tensor is not contiguous") != std::string::npos);
  const int32_t twice[] = {1, 1}, outside[] = {0, 2};
  hexad_comm* comm = nullptr;
  CHECK(runtime().comm_new(twice, 2, "bad", &comm) == HEXAD_INVALID_ARGUMENT);
  CHECK(runtime().comm_new(outside, 2, "bad", &comm) == HEXAD_INVALID_ARGUMENT);
  CHECK(runtime().comm_axis("diagonal", &comm) == HEXAD_INVALID_ARGUMENT);
  void* native = nullptr;
  CHECK(runtime().comm_native(world, "nccl", &native) == HEXAD_UNIMPLEMENTED);
  check_ok(runtime().comm_native(world, "c10d", &native));
  CHECK(native);
  runtime().stop();
}

void subgroups(const Rank& rank) {
  hexad_comm* world = started_world(rank);
  hexad_comm *tp = nullptr, *odd = nullptr, *even = nullptr, *alone = nullptr;
  check_ok(runtime().comm_axis("tp", &tp));
  CHECK(!tp);
  const int32_t evens[] = {2, 0}, odds[] = {1, 3}, one[] = {1};
  check_ok(runtime().comm_new(evens, 2, "half", &even));
  check_ok(runtime().comm_new(odds, 2, "half", &odd));
  check_ok(runtime().comm_new(one, 1, "alone", &alone));
  CHECK(!alone);
  hexad_comm* mine = rank.rank % 2 ? odd : even;
  CHECK((rank.rank % 2 ? even : odd) == nullptr);
  REQUIRE(mine);
  CHECK(runtime().comm_rank(mine) == (rank.rank == 0 || rank.rank == 3 ? 1 : 0));  // order of the list
  Tensor<float> value({static_cast<float>(rank.rank)});
  check_ok(runtime().all_reduce(mine, &value.dl, HEXAD_OP_SUM));
  CHECK(value.data[0] == (rank.rank % 2 ? 4.0f : 2.0f));
  check_ok(runtime().barrier(world));
  runtime().stop();
}

// Ranks 0 to 2 are one world and rank 3 another; they meet in a group of the whole run.
void blocks(const Rank& rank) {
  hexad_runtime_options options = runtime_test::options(rank, kTimeoutMs);
  options.block_first = rank.rank < 3 ? 0 : 3;
  options.block_size = rank.rank < 3 ? 3 : 1;
  check_ok(runtime().start(&options));
  hexad_comm *world = nullptr, *pair = nullptr, *all = nullptr;
  check_ok(runtime().comm_axis("world", &world));
  REQUIRE((world != nullptr) == (rank.rank < 3));
  const int32_t last[] = {1, 2}, everyone[] = {0, 1, 2, 3}, outside[] = {0, 3};
  if (world) {
    CHECK(runtime().comm_size(world) == 3);
    check_ok(runtime().comm_new(last, 2, "pair", &pair));
    CHECK((pair != nullptr) == (rank.rank > 0));
  }
  CHECK(runtime().comm_new(outside, 2, "outside", &pair) == HEXAD_INVALID_ARGUMENT);
  check_ok(runtime().comm_across(everyone, 4, "all", &all));
  REQUIRE(all);
  CHECK(runtime().comm_size(all) == 4);

  // Ranks 0 and 1 send columns of [2, 3] matrices to rank 3, which has room for [2, 2]; rank 2 takes no part.
  const auto value = static_cast<float>(10 * rank.rank);
  Tensor<float> matrix({value, value + 1, value + 2, value + 3, value + 4, value + 5}), room({0, 0, 0, 0});
  int64_t column[] = {2, 1}, of_three[] = {3, 1}, of_two[] = {2, 1};
  DLTensor sent = matrix.dl, left = room.dl, right = room.dl;
  for (DLTensor* view : {&sent, &left, &right}) view->ndim = 2, view->shape = column;
  sent.strides = of_three, left.strides = right.strides = of_two;
  sent.byte_offset = sizeof(float) * (rank.rank == 0 ? 1 : 2), right.byte_offset = sizeof(float);
  const hexad_transfer send{&sent, 3, 0}, receives[] = {{&right, 1, 0}, {&left, 0, 0}};
  if (rank.rank == 3) check_ok(runtime().exchange(all, nullptr, 0, receives, 2));
  if (rank.rank < 2) check_ok(runtime().exchange(all, &send, 1, nullptr, 0));
  if (rank.rank == 3) CHECK(room.data == std::vector<float>{1, 12, 4, 15});
  check_ok(runtime().barrier(all));
  runtime().stop();
}

void key_values(const Rank& rank) {
  hexad_comm* world = started_world(rank);
  const std::string mine = "from " + std::to_string(rank.rank);
  check_ok(runtime().kv_put(("key" + std::to_string(rank.rank)).c_str(), mine.data(), mine.size()));
  const void* value = nullptr;
  uint64_t size = 0;
  for (int other = 0; other < rank.world; ++other) {
    check_ok(runtime().kv_get(("key" + std::to_string(other)).c_str(), 5000, &value, &size));
    CHECK(std::string(static_cast<const char*>(value), size) == "from " + std::to_string(other));
  }
  CHECK(runtime().kv_get("nobody", 100, &value, &size) == HEXAD_DEADLINE_EXCEEDED);
  CHECK(std::string(runtime().error()) == "kv_get \"nobody\": nobody put the key within 100 ms");
  check_ok(runtime().barrier(world));
  runtime().stop();
}

// Store and groups listen on the run's address alone, and the store is shut once all ranks have come: they make groups
// through the connections that they have.
void listens(const Rank& rank) {
  hexad_comm *world = started_world(rank), *pair = nullptr;
  size_t ports = 0;
  for (const test_support::Place& place : test_support::listening(::getpid())) {
    CHECK_MESSAGE(place.address == test_support::kLoopback, "port " << place.port);
    ++ports;
  }
  CHECK(ports >= (rank.rank == 0 ? 2 : 1));
  const test_support::Idlers idlers(rank.port, 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  CHECK(idlers.let_in() == 0);
  const int32_t last[] = {1, 2};
  check_ok(runtime().comm_new(last, 2, "pair", &pair));
  CHECK((pair != nullptr) == (rank.rank > 0));
  if (pair) check_ok(runtime().barrier(pair));
  check_ok(runtime().barrier(world));
  runtime().stop();
}

// An address that is none of this host's.
void listens_elsewhere(const Rank& rank) {
  hexad_runtime_options options = runtime_test::options(rank, 3000);
  options.master_address = "192.0.2.1";
  CHECK(runtime().start(&options) == HEXAD_UNAVAILABLE);
  const std::string wanted = "cannot listen on 192.0.2.1, port " + std::to_string(rank.port) + ": ";
  CHECK_MESSAGE(std::string(runtime().error()).find(wanted) != std::string::npos, runtime().error());
}

// The last rank is not started.
void waits_for_missing(const Rank& rank) {
  const hexad_runtime_options options = runtime_test::options(rank, 2000);
  const auto begin = std::chrono::steady_clock::now();
  const hexad_code code = runtime().start(&options);
  const auto took = std::chrono::steady_clock::now() - begin;
  INFO(runtime().error());
  CHECK((code == HEXAD_DEADLINE_EXCEEDED || code == HEXAD_UNAVAILABLE));
  CHECK(took < std::chrono::seconds(10));
  CHECK(std::string(runtime().error()).find("runtime start, rank " + std::to_string(rank.rank) + " of 3") == 0);
}

// Rank 1 leaves after the start; the others' collective must end with an error within the deadline.
void loses_a_rank(const Rank& rank) {
  const hexad_runtime_options options = runtime_test::options(rank, 3000);
  check_ok(runtime().start(&options));
  hexad_comm* world = nullptr;
  check_ok(runtime().comm_axis("dp", &world));
  check_ok(runtime().barrier(world));
  if (rank.rank == 1) return;
  const auto begin = std::chrono::steady_clock::now();
  Tensor<float> value({1});
  const hexad_code code = runtime().all_reduce(world, &value.dl, HEXAD_OP_SUM);
  INFO(runtime().error());
  CHECK((code == HEXAD_DEADLINE_EXCEEDED || code == HEXAD_UNAVAILABLE));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(12));
  CHECK(std::string(runtime().error()).find("all_reduce over \"world\", rank") == 0);
  runtime().stop();
}

// Rank 0, which keeps the store, is stopped. Whoever misses it does not hang in the store, and then fails at once.
void stops_the_store(const Rank& rank) {
  hexad_comm* world = nullptr;
  const hexad_runtime_options options = runtime_test::options(rank, 3000);
  check_ok(runtime().start(&options));
  check_ok(runtime().comm_axis("world", &world));
  Tensor<int64_t> pid({rank.rank == 0 ? ::getpid() : 0});
  check_ok(runtime().all_reduce(world, &pid.dl, HEXAD_OP_SUM));
  if (rank.rank == 0) {
    std::raise(SIGSTOP);
    ::_exit(0);
  }
  const auto fails_within = [&](int seconds, const std::string& why) {
    const auto begin = std::chrono::steady_clock::now();
    Tensor<float> value({1});
    const hexad_code code = runtime().all_reduce(world, &value.dl, HEXAD_OP_SUM);
    CHECK((code == HEXAD_DEADLINE_EXCEEDED || code == HEXAD_UNAVAILABLE));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(seconds));
    CHECK_MESSAGE(std::string(runtime().error()).find(why) != std::string::npos, runtime().error());
  };
  const std::string lost = "all-reduce over group 'world' of ranks [0, 1, 2] failed; ";
  fails_within(12, lost + "missing: rank 0 (");
  fails_within(2, lost + "after " + lost + "missing: rank 0 (");
  ::kill(static_cast<pid_t>(pid.data[0]), SIGCONT);
  runtime().stop();
}

const rank_process::Scenarios scenarios = {{"collectives", collectives},
                                           {"wrong_arguments", wrong_arguments},
                                           {"subgroups", subgroups},
                                           {"key_values", key_values},
                                           {"listens", listens},
                                           {"listens_elsewhere", listens_elsewhere},
                                           {"waits_for_missing", waits_for_missing},
                                           {"loses_a_rank", loses_a_rank},
                                           {"stops_the_store", stops_the_store},
                                           {"blocks", blocks}};

}  // namespace

HEXAD_RANK_PROCESS(scenarios)

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("collectives on 2, 3 and 4 ranks") {
  for (int world : {2, 3, 4}) rank_process::run("collectives", world);
}
TEST_CASE("collectives refuse wrong arguments") { rank_process::run("wrong_arguments", 2); }
TEST_CASE("groups of a list of ranks") { rank_process::run("subgroups", 4); }
TEST_CASE("blocks of ranks are worlds of their own and exchange tensors across") { rank_process::run("blocks", 4); }
TEST_CASE("key/value store") { rank_process::run("key_values", 3); }
TEST_CASE("store and groups listen on the run's address, and the store is shut when all ranks have come") {
  rank_process::run("listens", 3);
}
TEST_CASE("a store that cannot listen is an error of rank 0") { rank_process::run("listens_elsewhere", 2, "", {1}); }
TEST_CASE("a missing rank is an error within the deadline") { rank_process::run("waits_for_missing", 3, "", {2}); }
TEST_CASE("a lost rank is an error within the deadline") { rank_process::run("loses_a_rank", 3); }
TEST_CASE("a stopped rank that keeps the store is an error within the deadline, and then at once") {
  rank_process::run("stops_the_store", 3, "", {}, std::chrono::seconds(60));
}

TEST_CASE("one rank needs no process group") {
  hexad_comm* comm = nullptr;
  CHECK(runtime().comm_axis("world", &comm) == HEXAD_FAILED_PRECONDITION);
  hexad_runtime_options options{};
  options.world_size = 1;
  options.device_type = kDLCPU;
  options.threads = 1;
  options.timeout_ms = 1000;
  options.rank = 1;
  CHECK(runtime().start(&options) == HEXAD_INVALID_ARGUMENT);
  CHECK(std::string(runtime().error()).find("rank 1 does not lie in a world of 1") != std::string::npos);
  options.rank = 0;
  check_ok(runtime().start(&options));
  CHECK(runtime().start(&options) == HEXAD_FAILED_PRECONDITION);
  check_ok(runtime().comm_axis("dp", &comm));
  CHECK(!comm);
  check_ok(runtime().kv_put("a", "xyz", 3));
  const void* value = nullptr;
  uint64_t size = 0;
  check_ok(runtime().kv_get("a", 0, &value, &size));
  CHECK(size == 3);
  runtime().stop();
}

TEST_CASE("memory") {
  CHECK(std::string(runtime().libtorch_version()).substr(0, 2) == "2.");
  void* pointer = nullptr;
  check_ok(runtime().alloc(kDLCPU, 0, 1024, &pointer));
  std::memset(pointer, 1, 1024);
  runtime().free(pointer, kDLCPU, 0);
  runtime().free(nullptr, kDLCPU, 0);
  Tensor<float> source({1, 2, 3});
  DLManagedTensorVersioned* made = nullptr;
  check_ok(runtime().tensor_new(&source.dl, &made));
  CHECK(made->dl_tensor.shape[0] == 3);
  check_ok(runtime().copy(&source.dl, &made->dl_tensor));
  CHECK(static_cast<float*>(made->dl_tensor.data)[2] == 3);
  made->deleter(made);
  Tensor<double> other({1, 2, 3});
  CHECK(runtime().copy(&source.dl, &other.dl) == HEXAD_INVALID_ARGUMENT);
  CHECK(runtime().alloc(kDLCUDA, 99, 16, &pointer) != HEXAD_OK);
  CHECK(runtime().stream(kDLCPU, 0) == nullptr);
}

TEST_SUITE_END();
