#include "lib/model/parallel_grid.hpp"

#include <utility>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

// world / (a b c), or the rule, the numbers and the nearest worlds that fit.
int64_t share(const char* result, const char* names, int64_t world, int64_t a, int64_t b, int64_t c) {
  for (const int64_t size : {world, a, b, c}) {
    if (size < 1)
      fail("parallel sizes: world, {} = {}, {}, {}, {}: every one must be at least 1", names, world, a, b, c);
  }
  const __int128 product = static_cast<__int128>(a) * b * c;
  if (product > world || world % static_cast<int64_t>(product) != 0) {
    // Products beyond any world are not worth a suggestion.
    if (product > (int64_t{1} << 40)) {
      fail("{} must be whole: world size {} cannot hold {} = {} x {} x {}; take smaller sizes", result, world, names, a,
           b, c);
    }
    const auto whole = static_cast<int64_t>(product);
    const int64_t below = world / whole * whole;
    fail("{} must be whole: world size {} is not divisible by {} = {} x {} x {} = {}; the nearest worlds are {}{}",
         result, world, names, a, b, c, whole, below > 0 ? fmt::format("{} and ", below) : "", below + whole);
  }
  return world / static_cast<int64_t>(product);
}

RankGrid dense_grid(const ParallelSizes& sizes) {
  const int64_t dp = share("data parallel size", "tensor x pipeline x context parallel", sizes.world, sizes.tensor,
                           sizes.pipeline, sizes.context);
  return RankGrid({.tp = sizes.tensor, .pp = sizes.pipeline, .dp = dp, .cp = sizes.context}, sizes.order);
}

RankGrid expert_grid(const ParallelSizes& sizes) {
  const int64_t etp = sizes.expert_tensor.value_or(sizes.tensor);
  const int64_t edp = share("expert data parallel size", "expert tensor x expert x pipeline parallel", sizes.world, etp,
                            sizes.expert, sizes.pipeline);
  return RankGrid({.tp = etp, .pp = sizes.pipeline, .dp = edp, .ep = sizes.expert}, sizes.order);
}

void check_order(const std::string& order, const RankGrid& dense, const RankGrid& expert) {
  const int64_t dp = dense.size(Axis::dp), edp = expert.size(Axis::dp);
  if (dense.size(Axis::pp) > 1 && parse_axes(order).back() != Axis::pp && dp != edp) {
    fail(
        "rank order '{}' does not end with pp, so data parallel size {} and expert data parallel size {} must be "
        "equal: put pp last, or choose expert sizes with expert tensor x expert = tensor x context",
        order, dp, edp);
  }
  const auto dense_groups = dense.groups({Axis::pp}), expert_groups = expert.groups({Axis::pp});
  if (dense_groups != expert_groups) {
    fail("rank order '{}' gives dense and expert layers different pipeline groups, {} and {}: put pp last", order,
         fmt::join(dense_groups, " "), fmt::join(expert_groups, " "));
  }
}

void check_factors(const ParallelSizes& sizes, int64_t dp, int64_t edp) {
  if (sizes.virtual_pipeline) {
    if (*sizes.virtual_pipeline < 1) {
      fail("virtual pipeline size is {}, want at least 1", *sizes.virtual_pipeline);
    }
    if (sizes.pipeline == 1) {
      fail("virtual pipeline size {} wants a pipeline parallel size above 1, got 1; leave it out or use 2 stages",
           *sizes.virtual_pipeline);
    }
  }
  const int64_t instances = sizes.optimizer_instances;
  if (instances < 1 || dp * sizes.context % instances != 0 || edp % instances != 0) {
    fail("optimizer instances {} must divide data x context parallel {} and expert data parallel {}", instances,
         dp * sizes.context, edp);
  }
  if (sizes.hierarchical_context.empty()) return;
  int64_t product = 1;
  for (const int64_t factor : sizes.hierarchical_context) {
    product = factor < 1 || factor > sizes.context ? 0 : product * factor;
    if (product == 0 || product > sizes.context) break;
  }
  if (product != sizes.context) {
    fail("hierarchical context parallel sizes {} must multiply to the context parallel size {}",
         sizes.hierarchical_context, sizes.context);
  }
}

}  // namespace

ParallelGrid::ParallelGrid(ParallelSizes sizes)
    : sizes_(std::move(sizes)), dense_(dense_grid(sizes_)), expert_(expert_grid(sizes_)) {
  check_order(sizes_.order, dense_, expert_);
  check_factors(sizes_, data_parallel(), expert_data_parallel());
}

RankCoordinates ParallelGrid::coordinates(int64_t rank) const {
  RankCoordinates at{};
  at.tp = dense_.coordinate(rank, Axis::tp);
  at.cp = dense_.coordinate(rank, Axis::cp);
  at.dp = dense_.coordinate(rank, Axis::dp);
  at.pp = dense_.coordinate(rank, Axis::pp);
  at.dp_cp = dense_.coordinate(rank, {Axis::dp, Axis::cp});
  at.etp = expert_.coordinate(rank, Axis::tp);
  at.ep = expert_.coordinate(rank, Axis::ep);
  at.edp = expert_.coordinate(rank, Axis::dp);
  at.word_embedding = at.pp == 0 || at.pp == sizes_.pipeline - 1;
  at.position_embedding = at.pp == 0;
  return at;
}

}  // namespace hexad::model
