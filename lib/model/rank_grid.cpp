#include "lib/model/rank_grid.hpp"

#include <algorithm>
#include <cctype>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr std::array<Axis, 5> kAllAxes = {Axis::tp, Axis::pp, Axis::dp, Axis::ep, Axis::cp};

int64_t size_of(const AxisSizes& sizes, Axis axis) {
  switch (axis) {
    case Axis::tp: return sizes.tp;
    case Axis::pp: return sizes.pp;
    case Axis::dp: return sizes.dp;
    case Axis::ep: return sizes.ep;
    case Axis::cp: return sizes.cp;
  }
  return 1;
}

}  // namespace

const char* axis_name(Axis axis) {
  constexpr std::array<const char*, 5> kNames = {"tp", "pp", "dp", "ep", "cp"};
  return kNames[static_cast<size_t>(axis)];
}

std::vector<Axis> parse_axes(const std::string& text) {
  std::vector<Axis> axes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('-', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto found =
        std::find_if(kAllAxes.begin(), kAllAxes.end(), [&](Axis axis) { return name == axis_name(axis); });
    if (found == kAllAxes.end()) {
      fail("rank order '{}': '{}' is no parallel axis; known: tp, cp, ep, dp, pp, joined by '-'", text, name);
    }
    if (std::count(axes.begin(), axes.end(), *found)) {
      fail("rank order '{}': '{}' is named twice; name every axis once", text, name);
    }
    axes.push_back(*found);
    begin = end + 1;
  }
  return axes;
}

RankGrid::RankGrid(const AxisSizes& sizes, const std::string& order, int64_t first_rank) : first_rank_(first_rank) {
  std::vector<Axis> axes = parse_axes(order);
  for (const Axis axis : kAllAxes) {
    const int64_t size = size_of(sizes, axis);
    if (size < 1) fail("rank grid: the size of {} is {}, want at least 1", axis_name(axis), size);
    if (std::count(axes.begin(), axes.end(), axis)) continue;
    if (size != 1) {
      fail("rank order '{}' lacks {}, whose size is {}: add '{}' to the order or set its size to 1", order,
           axis_name(axis), size, axis_name(axis));
    }
    axes.push_back(axis);
  }
  if (sizes.ep > 1 && sizes.cp > 1) {
    fail("rank grid: ep = {} and cp = {} cannot share a grid: dense layers have cp, expert layers ep", sizes.ep,
         sizes.cp);
  }
  if (first_rank < 0 || first_rank > kMostRanks) {
    fail("rank grid: the first rank is {}, want 0 to {}", first_rank, kMostRanks);
  }
  for (size_t i = 0; i < kAxes; ++i) {
    dims_[i] = {axes[i], size_of(sizes, axes[i]), world_};
    if (dims_[i].size > kMostRanks / world_) {
      fail("rank grid: tp x cp x ep x dp x pp = {} x {} x {} x {} x {} are more than {} ranks", sizes.tp, sizes.cp,
           sizes.ep, sizes.dp, sizes.pp, kMostRanks);
    }
    world_ *= dims_[i].size;
  }
}

size_t RankGrid::index(Axis axis) const {
  return std::find_if(dims_.begin(), dims_.end(), [&](const Dimension& dim) { return dim.axis == axis; }) -
         dims_.begin();
}

std::array<bool, RankGrid::kAxes> RankGrid::mask(const std::vector<Axis>& axes) const {
  std::array<bool, kAxes> along{};
  for (const Axis axis : axes) along[index(axis)] = true;
  return along;
}

int64_t RankGrid::local(int64_t rank) const {
  if (rank < first_rank_ || rank >= first_rank_ + world_) {
    fail("rank grid: rank {} is outside [{}, {})", rank, first_rank_, first_rank_ + world_);
  }
  return rank - first_rank_;
}

int64_t RankGrid::size(const std::vector<Axis>& axes) const {
  const auto along = mask(axes);
  int64_t product = 1;
  for (size_t i = 0; i < kAxes; ++i) product *= along[i] ? dims_[i].size : 1;
  return product;
}

std::string RankGrid::order() const {
  std::string text;
  for (const Dimension& dim : dims_) text += (text.empty() ? "" : "-") + std::string(axis_name(dim.axis));
  return text;
}

int64_t RankGrid::coordinate(int64_t rank, Axis axis) const {
  const Dimension& dim = dims_[index(axis)];
  return local(rank) / dim.stride % dim.size;
}

int64_t RankGrid::coordinate(int64_t rank, const std::vector<Axis>& axes) const {
  const auto along = mask(axes);
  int64_t place = 0, stride = 1;
  for (size_t i = 0; i < kAxes; ++i) {
    if (!along[i]) continue;
    place += local(rank) / dims_[i].stride % dims_[i].size * stride;
    stride *= dims_[i].size;
  }
  return place;
}

RankList RankGrid::members(int64_t base, const std::array<bool, kAxes>& along) const {
  std::vector<int64_t> offsets = {0};
  for (size_t i = 0; i < kAxes; ++i) {
    if (!along[i]) continue;
    const size_t faster = offsets.size();
    for (int64_t step = 1; step < dims_[i].size; ++step) {
      for (size_t j = 0; j < faster; ++j) offsets.push_back(offsets[j] + step * dims_[i].stride);
    }
  }
  RankList ranks;
  for (const int64_t offset : offsets) ranks.push_back(static_cast<int32_t>(first_rank_ + base + offset));
  return ranks;
}

RankList RankGrid::group_of(int64_t rank, const std::vector<Axis>& axes) const {
  const auto along = mask(axes);
  int64_t base = local(rank);
  for (size_t i = 0; i < kAxes; ++i) {
    if (along[i]) base -= local(rank) / dims_[i].stride % dims_[i].size * dims_[i].stride;
  }
  return members(base, along);
}

std::vector<RankList> RankGrid::groups(const std::vector<Axis>& axes) const {
  const auto along = mask(axes);
  auto across = along;
  for (bool& value : across) value = !value;
  std::vector<RankList> all;
  for (const int32_t first : members(0, across)) all.push_back(members(first - first_rank_, along));
  return all;
}

}  // namespace hexad::model
