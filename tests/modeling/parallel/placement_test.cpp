// Placements on real ranks: every way from one to another keeps the tensor.
#include "modeling/parallel/placement.hpp"

#include "modeling/error.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/runtime/runtime_library.hpp"

namespace hexad::modeling {
namespace {

using rank_process::Rank;

// What `rank` holds of `whole`; summands differ from rank to rank.
at::Tensor part_of(const at::Tensor& whole, const Placement& placement, const Group& group) {
  if (placement.kind == Placement::Kind::replicate) return whole;
  if (placement.kind == Placement::Kind::partial) {
    const double rank = static_cast<double>(group.rank()), size = static_cast<double>(group.size());
    return whole / size + (rank - (size - 1) / 2);  // the constants cancel in the sum
  }
  const Range mine = chunk_range(whole.size(placement.dim), group.size(), group.rank());
  return whole.narrow(placement.dim, mine.begin, mine.size()).contiguous();
}

at::Tensor sum_over_ranks(const at::Tensor& local, const Group& group) {
  at::Tensor sum = local.clone();
  group.all_reduce(sum).wait();
  return sum;
}

void check_move(const at::Tensor& whole, const Placement& from, const Placement& to, const Group& group) {
  const at::Tensor moved = redistribute(part_of(whole, from, group), whole.sizes().vec(), from, to, group);
  if (to.kind == Placement::Kind::partial) {
    CHECK(distance(sum_over_ranks(moved, group), whole) < 1e-5);
  } else {
    CHECK(moved.is_contiguous());
    CHECK(distance(moved, part_of(whole, to, group)) < 1e-5);
  }
}

void every_move(const Rank& rank) {
  const hexad_runtime& runtime = runtime_test::runtime();
  const hexad_runtime_options options = runtime_test::options(rank, 60000);
  runtime_test::check_ok(runtime.start(&options));
  hexad_comm* comm = nullptr;
  void* native = nullptr;
  runtime_test::check_ok(runtime.comm_axis("world", &comm));
  if (comm) runtime_test::check_ok(runtime.comm_native(comm, "c10d", &native));
  const Group group(static_cast<c10d::ProcessGroup*>(native));
  CHECK(group.size() == rank.world);
  const std::vector<Placement> placements = {Placement::replicate(), Placement::shard(0), Placement::shard(1),
                                             Placement::partial()};
  // 7 rows divide unevenly; of 2 rows some ranks hold none.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{7, 4}, {2, 5}, {4, 1, 3}})
    for (const Placement& from : placements)
      for (const Placement& to : placements) {
        CAPTURE(shape[0]);
        CAPTURE(static_cast<int>(from.kind));
        CAPTURE(static_cast<int>(to.kind));
        int64_t elements = 1;
        for (int64_t size : shape) elements *= size;
        check_move(at::arange(elements, at::kFloat).reshape(shape), from, to, group);
      }
  group.barrier();
  runtime.stop();
}

}  // namespace

HEXAD_RANK_PROCESS((rank_process::Scenarios{{"every_move", every_move}}))

TEST_CASE("redistribute keeps the tensor on 1, 2 and 3 ranks") {
  for (int world : {1, 2, 3}) rank_process::run("every_move", world, "", {}, std::chrono::seconds(60));
}

TEST_CASE("rows are cut as torch.chunk cuts them") {
  CHECK(chunk_range(10, 4, 0) == Range{0, 3});
  CHECK(chunk_range(10, 4, 3) == Range{9, 10});
  CHECK(chunk_range(4, 3, 1) == Range{2, 4});
  CHECK(chunk_range(4, 3, 2) == Range{4, 4});
  CHECK(chunk_range(2, 4, 3) == Range{2, 2});
  CHECK(local_shape({5, 6}, Placement::shard(1), 4, 3) == std::vector<int64_t>{5, 0});
}

TEST_CASE("a part of a wrong shape is refused") {
  CHECK_THROWS_WITH_AS(redistribute(at::zeros({3, 2}), {4, 2}, Placement::shard(0), Placement::replicate(), Group()),
                       "redistribute: rank 0 of 1 has a part of shape [3, 2], wanted [4, 2]", Error);
}

}  // namespace hexad::modeling
