#include "core/data/dataset/draws.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;
using Rows = std::vector<int64_t>;

namespace {

DataLoader loader(int64_t size, bool shuffle = true) {
  return {size, {.batch_size = 3, .shuffle = shuffle, .drop_last = true, .seed = 9}};
}

table::Lazy<int64_t> numbers(int64_t size) {
  return {size, [](int64_t i) { return i; }};
}

// All batches until there is none.
std::vector<Rows> all_of(Draws<int64_t>& draws) {
  std::vector<Rows> batches;
  for (Rows batch = draws.next(); !batch.empty(); batch = draws.next()) batches.push_back(batch);
  return batches;
}

}  // namespace

TEST_CASE("draws are the loader's batches of all epochs, and then none") {
  std::vector<Rows> expected;
  DataLoader plain = loader(11);
  while (plain.epoch() < 3) {
    if (const std::optional<Rows> batch = plain.next()) expected.push_back(*batch);
  }
  Draws<int64_t> draws(numbers(11), loader(11), 3);
  CHECK(all_of(draws) == expected);
  CHECK(draws.next().empty());
  CHECK(draws.epoch() == 3);
}

TEST_CASE("draws go on from where a state was taken, whatever was read ahead on either side") {
  Draws<int64_t> whole(numbers(11), loader(11), 3);
  const std::vector<Rows> expected = all_of(whole);
  for (size_t cut = 0; cut < expected.size(); ++cut) {
    CAPTURE(cut);
    Draws<int64_t> before(numbers(11), loader(11), 3), after(numbers(11), loader(11), 3);
    std::vector<Rows> got;
    while (got.size() < cut) got.push_back(before.next());
    after.restore(nlohmann::ordered_json(before.state()).get<LoaderState>());
    CHECK(after.epoch() == before.epoch());
    const std::vector<Rows> rest = all_of(after);
    got.insert(got.end(), rest.begin(), rest.end());
    CHECK(got == expected);
  }
}

TEST_CASE("the next batch is read while nobody waits for it, and no more than that") {
  std::atomic<int> made = 0;
  const table::Lazy<int64_t> counted(12, [&](int64_t i) {
    ++made;
    return i;
  });
  Draws<int64_t> draws(counted, loader(12, /*shuffle=*/false), 1);
  const auto wait_for = [&](int count) {
    for (int i = 0; i < 2000 && made < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return made.load();
  };
  CHECK(wait_for(3) == 3);
  CHECK(draws.next() == Rows{0, 1, 2});
  CHECK(wait_for(6) == 6);
}

TEST_CASE("a row that cannot be read ends the draw that it belongs to, and none before") {
  const table::Lazy<int64_t> broken(12, [](int64_t i) {
    if (i == 4) fail(ErrorKind::data, "rows.parquet[4]: it is damaged");
    return i;
  });
  Draws<int64_t> draws(broken, loader(12, /*shuffle=*/false), 1);
  CHECK(draws.next() == Rows{0, 1, 2});
  CHECK(draws.state().position == 3);
  for (int again = 0; again < 2; ++again) CHECK_THROWS_WITH(draws.next(), "rows.parquet[4]: it is damaged");
  CHECK(draws.state().position == 3);
}

TEST_CASE("a state of other data is refused, and the draws stay where they are") {
  Draws<int64_t> draws(numbers(12), loader(12, /*shuffle=*/false), 1);
  CHECK_THROWS_WITH(draws.restore({0, 3, 11, 9}), doctest::Contains("taken with 11 records"));
  CHECK(draws.next() == Rows{0, 1, 2});
}
