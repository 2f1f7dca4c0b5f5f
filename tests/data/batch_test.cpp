#include "core/data/batch.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;
using Rows = std::vector<int64_t>;

namespace {

// Three samples of 2, 0 and 3 tokens in two groups.
Batch example() {
  Batch batch = Batch::of_lengths(Rows{2, 0, 3});
  batch.set_groups({0, 1, 1}, 2);
  batch.set("ids", Tensor::of<int64_t>({1, 2, 3, 4, 5}), Axis::token);
  batch.set("reward", Tensor::of<float>({0.5f, 1.0f, 2.0f}), Axis::sample);
  batch.set("difficulty", Tensor::of<double>({10.0, 20.0}), Axis::group);
  return batch;
}

Rows ids(const Batch& batch) {
  const auto values = batch.at("ids").span<int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("rows are selected, repeated and brought back in order") {
  const Batch batch = example();
  const Batch picked = batch.select(Rows{2, 0, 2});
  CHECK(ids(picked) == Rows{3, 4, 5, 1, 2, 3, 4, 5});
  CHECK(picked.lengths() == Rows{3, 2, 3});
  CHECK(picked.at("reward").item(0) == 2.0);
  CHECK(picked.row<double>("difficulty", 1)[0] == 10.0);
  CHECK(picked.row<int64_t>("ids", 1)[1] == 2);

  const Batch shuffled = batch.reorder(Rows{2, 0, 1});
  CHECK(ids(shuffled.reorder(inverse_permutation(Rows{2, 0, 1}))) == ids(batch));
  CHECK(ids(batch.repeat_interleave(2)) == Rows{1, 2, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(batch.slice(1, 3).lengths() == Rows{0, 3});
}

TEST_CASE("joined batches keep their groups apart") {
  const std::vector<Batch> parts = {example(), example()};
  const Batch joined = Batch::concat(parts);
  CHECK(joined.size() == 6);
  CHECK(joined.tokens() == 10);
  CHECK(joined.groups() == 4);
  CHECK(joined.row<double>("difficulty", 5)[0] == 20.0);
  CHECK(Rows(joined.group_of().begin(), joined.group_of().end()) == Rows{0, 1, 1, 2, 3, 3});
}

TEST_CASE("a column must fit its axis and a name must exist") {
  Batch batch = example();
  CHECK_THROWS_WITH_AS(batch.set("mask", Tensor(DType::f32, {4}), Axis::token),
                       doctest::Contains("'mask' is f32[4], but axis 0 must count 5 tokens"), Error);
  CHECK_THROWS_WITH_AS(batch.at("rewards"), doctest::Contains("no column 'rewards'; it has: difficulty, ids, reward"),
                       Error);
  CHECK_THROWS_WITH_AS(batch.at("ids").span<float>(), doctest::Contains("tensor i64[5] was read as f32"), Error);
  CHECK_THROWS_AS(batch.select(Rows{3}), Error);
  CHECK_THROWS_AS(batch.reorder(Rows{0, 0, 1}), Error);
  CHECK_THROWS_AS(Batch::of_cu_seqlens({0, 3, 2}), Error);
}

TEST_CASE("tensors share on copy and part on clone") {
  Tensor first = Tensor::of<float>({1.0f, 2.0f});
  Tensor shared = first;
  Tensor apart = first.clone();
  shared.span<float>()[0] = 7;
  CHECK(first.item(0) == 7.0);
  CHECK(apart.item(0) == 1.0);
  CHECK(apart.to(DType::i32) == Tensor::of<int32_t>({1, 2}));
  CHECK(reinterpret_cast<uintptr_t>(first.data()) % 64 == 0);
  CHECK_THROWS_AS(Tensor(DType::f32, {-1}), Error);
}
