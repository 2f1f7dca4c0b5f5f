// The ranks of a world cut along parallel axes, in any order of the axes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::model {

using RankList = std::vector<int32_t>;

enum class Axis { tp, pp, dp, ep, cp };

const char* axis_name(Axis axis);

// "dp-cp" in any case. Throws Error for an unknown axis and for one that is named twice.
std::vector<Axis> parse_axes(const std::string& text);

struct AxisSizes {
  int64_t tp = 1, pp = 1, dp = 1, ep = 1, cp = 1;
};

// rank = first_rank + sum over the axes of coordinate * stride; the stride of an axis is the product of the sizes of
// those before it in the order, so the first axis joins neighbours. Dense layers use a grid with ep = 1,
// expert layers one with cp = 1. Source: Narayanan et al. 2021, and NVIDIA's parallel_state.py (RankGenerator,
// generate_masked_orthogonal_rank_groups).
class RankGrid {
 public:
  // `order`: axes joined by "-", the fastest first; axes of size 1 may be left out. Throws Error for a size below 1, an
  // axis of size > 1 that the order lacks, ep and cp > 1 at once, and more than 2^20 ranks.
  RankGrid(const AxisSizes& sizes, const std::string& order, int64_t first_rank = 0);

  int64_t world_size() const { return world_; }
  int64_t size(Axis axis) const { return dims_[index(axis)].size; }
  // The size of a group along several axes.
  int64_t size(const std::vector<Axis>& axes) const;
  // Lower case, with all five axes.
  std::string order() const;

  int64_t coordinate(int64_t rank, Axis axis) const;
  // The place of `rank` in its group along `axes`: what c10d calls the rank in the group.
  int64_t coordinate(int64_t rank, const std::vector<Axis>& axes) const;

  // The ranks that differ from `rank` in `axes` alone. They run over the axes in the order of the grid, the fastest
  // first, however `axes` is ordered. Throws Error when `rank` is not of this grid.
  RankList group_of(int64_t rank, const std::vector<Axis>& axes) const;
  // All groups along `axes`: a partition of the world, ordered by the coordinates of the other axes.
  std::vector<RankList> groups(const std::vector<Axis>& axes) const;

 private:
  struct Dimension {
    Axis axis;
    int64_t size, stride;
  };
  static constexpr size_t kAxes = 5;
  size_t index(Axis axis) const;
  std::array<bool, kAxes> mask(const std::vector<Axis>& axes) const;
  int64_t local(int64_t rank) const;
  RankList members(int64_t base, const std::array<bool, kAxes>& along) const;

  std::array<Dimension, kAxes> dims_;
  int64_t world_ = 1, first_rank_;
};

}  // namespace hexad::model
