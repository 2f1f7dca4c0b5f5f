#include "core/cluster/refit/plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/ranges.h>

#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box both;
  for (size_t d = 0; d < a.shape.size(); ++d) {
    const int64_t begin = std::max(a.offsets[d], b.offsets[d]);
    const int64_t end = std::min(a.offsets[d] + a.shape[d], b.offsets[d] + b.shape[d]);
    if (begin >= end) return std::nullopt;
    both.offsets.push_back(begin);
    both.shape.push_back(end - begin);
  }
  return both;
}

// What is left of `box` without `part`, which lies inside of it: boxes that do not overlap.
std::vector<Box> without(Box box, const Box& part) {
  std::vector<Box> rest;
  for (size_t d = 0; d < box.shape.size(); ++d) {
    const int64_t begin = part.offsets[d], end = begin + part.shape[d];
    const int64_t box_begin = box.offsets[d], box_end = box_begin + box.shape[d];
    for (const auto& [from, to] : {std::pair(box_begin, begin), std::pair(end, box_end)}) {
      if (from >= to) continue;
      rest.push_back(box);
      rest.back().offsets[d] = from, rest.back().shape[d] = to - from;
    }
    box.offsets[d] = begin, box.shape[d] = part.shape[d];
  }
  return rest;
}

// A part of a weight and the ranks that have it.
struct Held {
  Box box;
  std::vector<int> ranks;
};

struct HeldWeight {
  const LayoutSlice* first = nullptr;
  std::vector<Held> parts;
};

std::map<std::string, HeldWeight> by_name(const std::vector<Layout>& held) {
  std::map<std::string, HeldWeight> weights;
  for (size_t rank = 0; rank < held.size(); ++rank) {
    for (const LayoutSlice& slice : held[rank]) {
      HeldWeight& weight = weights[slice.name];
      if (!weight.first) weight.first = &slice;
      if (weight.first->global_shape != slice.global_shape)
        fail(ErrorKind::worker, "refit: weight '{}' has shape [{}] on one training rank and [{}] on another",
             slice.name, fmt::join(weight.first->global_shape, ", "), fmt::join(slice.global_shape, ", "));
      const auto same = std::ranges::find(weight.parts, slice.box, &Held::box);
      (same == weight.parts.end() ? weight.parts.emplace_back(Held{slice.box, {}}) : *same)
          .ranks.push_back(static_cast<int>(rank));
    }
  }
  return weights;
}

const HeldWeight& require(const std::map<std::string, HeldWeight>& weights, const LayoutSlice& slice) {
  const auto found = weights.find(slice.name);
  if (found == weights.end())
    fail(ErrorKind::worker, "refit: the generator needs weight '{}', which no training rank holds", slice.name);
  const LayoutSlice& held = *found->second.first;
  if (held.global_shape != slice.global_shape)
    fail(ErrorKind::worker, "refit: weight '{}' has shape [{}] in training and [{}] in generation", slice.name,
         fmt::join(held.global_shape, ", "), fmt::join(slice.global_shape, ", "));
  return found->second;
}

int64_t bytes_of(const LayoutSlice& type, const Box& box) { return box.elements() * type.bits / 8; }

}  // namespace

int64_t Box::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

void check_slice(const LayoutSlice& slice) {
  constexpr int64_t kMostElements = int64_t{1} << 50;
  const auto& [offsets, shape] = slice.box;
  bool good = offsets.size() == slice.global_shape.size() && shape.size() == offsets.size();
  int64_t elements = 1;
  for (size_t d = 0; good && d < shape.size(); ++d) {
    const int64_t whole = slice.global_shape[d];
    good = whole >= 0 && whole <= kMostElements / std::max<int64_t>(elements, 1) && shape[d] >= 0 &&
           shape[d] <= whole && offsets[d] >= 0 && offsets[d] <= whole - shape[d];
    elements *= good ? whole : 0;
  }
  if (!good)
    fail(ErrorKind::worker, "refit: elements [{}] + [{}] do not lie in weight '{}' of shape [{}]",
         fmt::join(offsets, ", "), fmt::join(shape, ", "), slice.name, fmt::join(slice.global_shape, ", "));
}

Layout whole_weights(const std::vector<Layout>& held) {
  Layout whole;
  std::map<std::string, bool> seen;
  for (const Layout& layout : held) {
    for (const LayoutSlice& slice : layout) {
      if (std::exchange(seen[slice.name], true)) continue;
      whole.push_back(slice);
      whole.back().box = {std::vector<int64_t>(slice.global_shape.size(), 0), slice.global_shape};
    }
  }
  return whole;
}

RefitPlan plan_refit(const std::vector<Layout>& held, std::vector<Layout>& needed, int64_t step_bytes) {
  const std::map<std::string, HeldWeight> weights = by_name(held);
  RefitPlan plan;
  std::vector<int64_t>& sent = plan.sent;
  sent.assign(held.size(), 0);
  const auto pick = [&](const std::vector<int>& ranks) {
    return *std::ranges::min_element(ranks, {}, [&](int rank) { return sent[static_cast<size_t>(rank)]; });
  };
  // Receivers advance together, slice by slice, so that every sender is busy in every step.
  size_t longest = 0;
  for (const Layout& layout : needed) longest = std::max(longest, layout.size());
  int64_t in_step = 0;
  for (size_t index = 0; index < longest; ++index) {
    if (plan.steps.empty() || in_step >= step_bytes) plan.steps.emplace_back(), in_step = 0;
    int64_t largest = 0;
    for (size_t to = 0; to < needed.size(); ++to) {
      if (index >= needed[to].size()) continue;
      LayoutSlice& slice = needed[to][index];
      const HeldWeight& weight = require(weights, slice);
      slice.type_code = weight.first->type_code, slice.bits = weight.first->bits;
      largest = std::max(largest, bytes_of(slice, slice.box));
      std::vector<Box> missing = {slice.box};
      for (const Held& part : weight.parts) {
        std::vector<Box> rest;
        for (const Box& box : missing) {
          const std::optional<Box> both = intersection(box, part.box);
          if (!both) {
            rest.push_back(box);
            continue;
          }
          const int from = pick(part.ranks);
          sent[static_cast<size_t>(from)] += bytes_of(slice, *both);
          plan.steps.back().push_back({from, static_cast<int>(to), index, *both});
          std::ranges::move(without(box, *both), std::back_inserter(rest));
        }
        missing = std::move(rest);
      }
      if (!missing.empty())
        fail(ErrorKind::worker, "refit: of weight '{}' no training rank holds elements [{}] + [{}]", slice.name,
             fmt::join(missing[0].offsets, ", "), fmt::join(missing[0].shape, ", "));
    }
    in_step += largest;
  }
  return plan;
}

}  // namespace hexad::cluster
