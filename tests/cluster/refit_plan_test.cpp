// Weights from one layout to another: every element once, from one who has it, and nobody sends much more than others.
#include "core/cluster/refit/plan.hpp"

#include <doctest/doctest.h>
#include <hexad/abi.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/cluster/protocol/protocol.hpp"
#include "lib/base/error.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using cluster::Box;
using cluster::Layout;
using cluster::LayoutSlice;
using cluster::Piece;
using cluster::plan_refit;
using cluster::RefitPlan;
using plugin_test::error_of;

namespace {

LayoutSlice slice(const std::string& name, std::vector<int64_t> global, std::vector<int64_t> offsets,
                  std::vector<int64_t> shape, uint8_t bits = 32) {
  return {name, std::move(global), {std::move(offsets), std::move(shape)}, kDLFloat, bits};
}

// How often each element of what a rank needs arrives; each from a rank that holds it.
std::map<std::string, std::vector<int>> arrivals(const RefitPlan& plan, const std::vector<Layout>& held,
                                                 const Layout& of, int to) {
  std::map<std::string, std::vector<int>> counts;
  for (const LayoutSlice& need : of) counts[need.name].resize(static_cast<size_t>(need.box.elements()));
  for (const auto& step : plan.steps) {
    for (const Piece& piece : step) {
      if (piece.to != to) continue;
      const LayoutSlice& need = of.at(piece.slice);
      const auto holds = [&](const LayoutSlice& have) {
        if (have.name != need.name) return false;
        for (size_t d = 0; d < piece.box.shape.size(); ++d) {
          if (piece.box.offsets[d] < have.box.offsets[d]) return false;
          if (piece.box.offsets[d] + piece.box.shape[d] > have.box.offsets[d] + have.box.shape[d]) return false;
        }
        return true;
      };
      CHECK(std::ranges::any_of(held.at(static_cast<size_t>(piece.from)), holds));
      for (int64_t i = 0; i < piece.box.elements(); ++i) {
        int64_t rest = i, place = 0, stride = 1;
        for (size_t d = piece.box.shape.size(); d-- > 0; rest /= piece.box.shape[d], stride *= need.box.shape[d])
          place += (rest % piece.box.shape[d] + piece.box.offsets[d] - need.box.offsets[d]) * stride;
        ++counts[need.name].at(static_cast<size_t>(place));
      }
    }
  }
  return counts;
}

void check_complete(const RefitPlan& plan, const std::vector<Layout>& held, const std::vector<Layout>& needed) {
  for (size_t rank = 0; rank < needed.size(); ++rank) {
    for (const auto& [name, counts] : arrivals(plan, held, needed[rank], static_cast<int>(rank))) {
      INFO(name << " on rank " << rank);
      CHECK(std::ranges::all_of(counts, [](int count) { return count == 1; }));
    }
  }
}

// The layout as the reply of another process brings it.
Layout across_processes(const Layout& layout) {
  using Reply = cluster::protocol::RefitLayout::Reply;
  return cluster::protocol::from_message<Reply>(to_message(Reply{.held = layout, .needed = {}}), "refit_layout").held;
}

}  // namespace

TEST_CASE("rows of two trainers become the whole weights of two generators, half the bytes from each") {
  const std::vector<Layout> held = {{slice("a", {6, 4}, {0, 0}, {3, 4}), slice("b", {5}, {0}, {3})},
                                    {slice("a", {6, 4}, {3, 0}, {3, 4}), slice("b", {5}, {3}, {2})}};
  std::vector<Layout> needed(4);
  needed[2] = needed[3] = cluster::whole_weights(held);
  CHECK(needed[2].size() == 2);
  CHECK(needed[2][0].box == Box{{0, 0}, {6, 4}});
  const RefitPlan plan = plan_refit(held, needed, 1 << 20);
  check_complete(plan, held, needed);
  CHECK(plan.steps.size() == 1);
  CHECK(plan.sent == std::vector<int64_t>{2 * 4 * (12 + 3), 2 * 4 * (12 + 2)});
}

TEST_CASE("columns, rows and copies: any layout feeds any other") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    // Trainers: a grid of rows x columns over each matrix, some grids held twice. Generators: slices of their own.
    const int64_t rows = 1 + static_cast<int64_t>(random() % 9), columns = 1 + static_cast<int64_t>(random() % 9);
    const auto cut = [&](int64_t size, int64_t parts, int64_t part) {
      return std::pair(size * part / parts, size * (part + 1) / parts - size * part / parts);
    };
    std::vector<Layout> held, needed;
    const int64_t r = 1 + static_cast<int64_t>(random() % 3), c = 1 + static_cast<int64_t>(random() % 3);
    const int64_t copies = 1 + static_cast<int64_t>(random() % 2), parts = 1 + static_cast<int64_t>(random() % 3);
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (int64_t i = 0; i < r * c; ++i) {
        const auto [row, height] = cut(rows, r, i / c);
        const auto [column, width] = cut(columns, c, i % c);
        Layout& layout = held.emplace_back();
        if (height * width > 0) layout.push_back(slice("w", {rows, columns}, {row, column}, {height, width}));
      }
    }
    needed.resize(held.size());
    for (int64_t part = 0; part < parts; ++part) {
      const auto [column, width] = cut(columns, parts, part);
      Layout& layout = needed.emplace_back();
      if (width > 0) layout.push_back(slice("w", {rows, columns}, {0, column}, {rows, width}));
    }
    const RefitPlan plan = plan_refit(held, needed, 16);
    check_complete(plan, held, needed);
  }
}

TEST_CASE("of several ranks that hold the same the idle one sends") {
  const Layout same = {slice("a", {4}, {0}, {4}), slice("b", {4}, {0}, {4}), slice("c", {4}, {0}, {4})};
  const std::vector<Layout> held = {same, same, same};
  std::vector<Layout> needed(4);
  needed[3] = same;
  CHECK(plan_refit(held, needed, 1 << 20).sent == std::vector<int64_t>{16, 16, 16});
}

TEST_CASE("a step holds no more than its bytes and one weight, and weights travel in the trainers' type") {
  const std::vector<Layout> held = {
      {slice("a", {8}, {0}, {8}, 16), slice("b", {8}, {0}, {8}, 16), slice("c", {8}, {0}, {8}, 16)}};
  std::vector<Layout> needed = {{}, {slice("a", {8}, {0}, {8}), slice("b", {8}, {0}, {8}), slice("c", {8}, {0}, {8})}};
  const RefitPlan plan = plan_refit(held, needed, 20);
  CHECK(plan.steps.size() == 2);
  CHECK(plan.sent == std::vector<int64_t>{48});
  CHECK(needed[1][0].bits == 16);
}

TEST_CASE("weights that do not fit together are named") {
  const std::vector<Layout> held = {{slice("a", {6}, {0}, {2})}, {slice("a", {6}, {4}, {2})}};
  const auto error = [&](const LayoutSlice& need) {
    std::vector<Layout> needed = {{}, {}, {need}};
    return error_of([&] { plan_refit(held, needed, 1 << 20); });
  };
  CHECK(error(slice("b", {6}, {0}, {6})) == "refit: the generator needs weight 'b', which no training rank holds");
  CHECK(error(slice("a", {7}, {0}, {7})) == "refit: weight 'a' has shape [6] in training and [7] in generation");
  CHECK(error(slice("a", {6}, {0}, {6})) == "refit: of weight 'a' no training rank holds elements [2] + [2]");
}

TEST_CASE("ranks that hold one weight in two shapes are refused") {
  std::vector<Layout> needed = {{}, {}, {slice("a", {6}, {0}, {6})}};
  CHECK(error_of([&] {
          plan_refit({{slice("a", {6}, {0}, {6})}, {slice("a", {2, 3}, {0, 0}, {2, 3})}}, needed, 1 << 20);
        }) == "refit: weight 'a' has shape [6] on one training rank and [2, 3] on another");
}

TEST_CASE("a slice that does not lie in its weight is refused where it arrives") {
  const auto error = [](const LayoutSlice& wrong) { return error_of([&] { across_processes({wrong}); }); };
  CHECK(error(slice("a", {6}, {4}, {3})) == "refit: elements [4] + [3] do not lie in weight 'a' of shape [6]");
  CHECK(error(slice("a", {6}, {-1}, {3})) == "refit: elements [-1] + [3] do not lie in weight 'a' of shape [6]");
  CHECK(error(slice("a", {6, 2}, {0}, {6})) == "refit: elements [0] + [6] do not lie in weight 'a' of shape [6, 2]");
  const int64_t huge = int64_t{1} << 40;
  CHECK(error(slice("a", {huge, huge}, {0, 0}, {1, 1})) != "");
}

TEST_CASE("a layout crosses processes") {
  const Layout layout = {slice("a.b", {6, 4}, {3, 0}, {3, 4}, 16)};
  const Layout back = across_processes(layout);
  CHECK(back.at(0).name == "a.b");
  CHECK(back.at(0).global_shape == std::vector<int64_t>{6, 4});
  CHECK(back.at(0).box == layout[0].box);
  CHECK(back.at(0).bits == 16);
}
