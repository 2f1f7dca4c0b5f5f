// The group of threads with which the conformance kit runs a backend on two ranks.
#include "sdk/verify/thread_group.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <thread>

using hexad::verify::ThreadGroup;

namespace {

struct Values {
  explicit Values(std::vector<float> list) : data(std::move(list)), size(static_cast<int64_t>(data.size())) {}
  DLTensor tensor() { return {data.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, nullptr, 0}; }
  std::vector<float> data;
  int64_t size;
};

void both(const std::function<void(int)>& work) {
  std::thread other(work, 1);
  work(0);
  other.join();
}

// What both ranks' outputs hold after a collective over {1, 2} and {10, 20}.
std::vector<std::vector<float>> after(const std::string& what, int64_t out_size, int32_t argument = 0) {
  ThreadGroup group;
  Values in[] = {Values({1, 2}), Values({10, 20})};
  Values out[] = {Values(std::vector<float>(out_size)), Values(std::vector<float>(out_size))};
  const bool in_place = what == "all_reduce" || what == "broadcast";
  std::string problems[2];
  both([&](int rank) {
    DLTensor from = in[rank].tensor(), to = in_place ? from : out[rank].tensor();
    problems[rank] = group.run(rank, {what, &from, &to, argument});
  });
  CHECK(problems[0] == "");
  CHECK(problems[1] == "");
  return in_place ? std::vector{in[0].data, in[1].data} : std::vector{out[0].data, out[1].data};
}

}  // namespace

TEST_CASE("collectives of two threads") {
  using Lists = std::vector<std::vector<float>>;
  CHECK(after("all_reduce", 2, HEXAD_OP_SUM) == Lists{{11, 22}, {11, 22}});
  CHECK(after("all_reduce", 2, HEXAD_OP_MIN) == Lists{{1, 2}, {1, 2}});
  CHECK(after("all_reduce", 2, HEXAD_OP_MAX) == Lists{{10, 20}, {10, 20}});
  CHECK(after("broadcast", 2, 1) == Lists{{10, 20}, {10, 20}});
  CHECK(after("all_gather", 4) == Lists{{1, 2, 10, 20}, {1, 2, 10, 20}});
  CHECK(after("reduce_scatter", 1) == Lists{{11}, {22}});
}

TEST_CASE("ranks that call different collectives are told so") {
  ThreadGroup group;
  std::string problems[2];
  both([&](int rank) { problems[rank] = group.run(rank, {rank ? "barrier" : "comm_new"}); });
  CHECK(problems[0] == "one rank calls comm_new, the other barrier");
  CHECK(problems[1] == "one rank calls barrier, the other comm_new");
}

TEST_CASE("a service fails once, on every rank, and a value waits for its key") {
  ThreadGroup group;
  group.fail_at(2);
  for (int rank : {0, 1}) CHECK_FALSE(group.trips(rank));
  CHECK_FALSE(group.tripped());
  for (int rank : {0, 1}) CHECK(group.trips(rank));
  for (int rank : {0, 1}) CHECK_FALSE(group.trips(rank));
  CHECK(group.tripped());
  std::string value;
  CHECK_FALSE(group.get("key", 1, value));
  group.put("key", "text");
  CHECK(group.get("key", 1, value));
  CHECK(value == "text");
}
