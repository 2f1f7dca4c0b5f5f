// Groups come in any order and leave whole, in theirs, once, and never too old.
#include "core/algorithm/grpo/replay_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using algorithm::ReplayBuffer;
using algorithm::Trajectories;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

Trajectories group(int64_t target, int64_t place, int64_t version) {
  Trajectories trajectories;
  trajectories.target = target, trajectories.place = place, trajectories.version = version;
  return trajectories;
}

}  // namespace

TEST_CASE("whatever the order of arrival, a step leaves whole and in order") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t groups = 1 + static_cast<int64_t>(random() % 5), age = static_cast<int64_t>(random() % 4);
    ReplayBuffer buffer(groups, age);
    CHECK(buffer.capacity() == groups * std::max<int64_t>(1, age) * 2);
    // Started as a collector would: those of steps version + 1 to version + 1 + age; they end in any order.
    std::vector<Trajectories> running;
    int64_t next = 1, taken = 0, added = 0;
    for (int64_t version = 0; version < 12; ++version) {
      for (; next <= version + 1 + age; ++next)
        for (int64_t place = 0; place < groups; ++place) running.push_back(group(next, place, version));
      while (!buffer.ready(version + 1)) {
        REQUIRE(!running.empty());
        std::swap(running[random() % running.size()], running.back());
        buffer.add(running.back());
        running.pop_back();
        ++added;
        REQUIRE(buffer.size() <= buffer.capacity());
        REQUIRE(buffer.size() == added - taken * groups);
      }
      const std::vector<Trajectories> step = buffer.take(version + 1);
      ++taken;
      REQUIRE(static_cast<int64_t>(step.size()) == groups);
      for (int64_t place = 0; place < groups; ++place) {
        const Trajectories& one = step[static_cast<size_t>(place)];
        CHECK(one.target == version + 1);
        CHECK(one.place == place);
        CHECK(age_of(one) >= 0);
        CHECK(age_of(one) <= age);
      }
      CHECK_FALSE(buffer.ready(version + 1));
    }
  }
}

TEST_CASE("a group that is late, there already, too old or of no step is refused") {
  ReplayBuffer buffer(2, 1);
  buffer.add(group(1, 0, 0));
  CHECK_FALSE(buffer.ready(1));
  CHECK(contains(error_of([&] { buffer.take(1); }), "replay buffer: step 1 does not have its 2 groups"));
  CHECK(
      contains(error_of([&] { buffer.add(group(1, 0, 0)); }), "group 0 of step 1, drawn from version 0: it is there"));
  CHECK(contains(error_of([&] { buffer.add(group(1, 2, 0)); }), "a step has 2 groups"));
  CHECK(contains(error_of([&] { buffer.add(group(3, 0, 0)); }), "its age would be 2, and may be 0 to 1"));
  CHECK(contains(error_of([&] { buffer.add(group(1, 1, 1)); }), "its age would be -1, and may be 0 to 1"));
  buffer.add(group(1, 1, 0));
  CHECK(buffer.take(1).size() == 2);
  CHECK(contains(error_of([&] { buffer.add(group(1, 1, 0)); }), "step 1 has been trained"));
  CHECK(buffer.size() == 0);
}

TEST_CASE("what is thrown away is counted, and makes room") {
  ReplayBuffer buffer(2, 1);
  for (int64_t place : {0, 1}) buffer.add(group(1, place, 0));
  buffer.add(group(2, 0, 0));
  CHECK(buffer.clear() == 3);
  CHECK(buffer.size() == 0);
  CHECK_FALSE(buffer.ready(1));
  CHECK(buffer.clear() == 0);
}

TEST_CASE("it holds so many groups and no more") {
  ReplayBuffer buffer(2, 1);
  for (int64_t step : {2, 3})
    for (int64_t place : {0, 1}) buffer.add(group(step, place, 1));
  CHECK(buffer.full());
  CHECK(contains(error_of([&] { buffer.add(group(1, 0, 0)); }), "there are 4 groups in it, as many as it holds"));
}
