// The two rank grids, dense TP x CP x DP x PP and experts ETP x EP x EDP x PP, in an order of the user's.
#include <fmt/format.h>

#include <algorithm>

#include "plugins/megatron/check/check.hpp"

namespace hexad::megatron_check {
namespace {

std::vector<std::string> axes_of(const std::string& order) {
  std::vector<std::string> names(1);
  for (const char c : order) {
    if (c == '-')
      names.emplace_back();
    else
      names.back() += c;
  }
  return names;
}

// The distance in rank between neighbouring stages: the product of the sizes left of pp.
int64_t stage_stride(const std::vector<std::string>& order, int64_t tp, int64_t cp, int64_t ep, int64_t dp) {
  int64_t stride = 1;
  for (const std::string& axis : order) {
    if (axis == "pp") break;
    stride *= axis == "tp" ? tp : axis == "cp" ? cp : axis == "ep" ? ep : dp;
  }
  return stride;
}

}  // namespace

// Unless pp is outermost, both grids have the same data-parallel size and the same pipelines.
void check_rank_order(const Check& check) {
  const nlohmann::json value = check.keys.value("rank_order", nlohmann::json());
  const std::string order = value.is_string() ? value.get<std::string>() : "tp-cp-ep-dp-pp";
  std::vector<std::string> names = axes_of(order), sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"})
    return check.error("rank_order",
                       fmt::format("got '{}', wanted tp, cp, ep, dp and pp once each, joined by '-': the default is "
                                   "tp-cp-ep-dp-pp, and tp-cp-pp-ep-dp is Megatron's other order",
                                   order));
  const int64_t tp = check.size("tensor_model_parallel_size"), pp = check.size("pipeline_model_parallel_size"),
                cp = check.size("context_parallel_size"), ep = check.size("expert_model_parallel_size"),
                etp = check.size("expert_tensor_parallel_size");
  const nlohmann::json ranks = check.world.value("train_ranks", nlohmann::json());
  if (names.back() == "pp" || pp == 1 || !ranks.is_number_integer()) return;
  const int64_t world = ranks.get<int64_t>(), dense = tp * cp * pp, experts = etp * ep * pp;
  if (world % dense != 0 || world % experts != 0) return;  // said by the rules about the grid
  const int64_t dp = world / dense, edp = world / experts;
  if (dp != edp)
    return check.error("rank_order",
                       fmt::format("with {} the dense part and the experts need the same data-parallel size, got {} "
                                   "(tensor x context {} x {}) and {} (expert tensor x expert {} x {}); nearest: "
                                   "tp-cp-ep-dp-pp",
                                   order, dp, tp, cp, edp, etp, ep));
  const int64_t dense_stride = stage_stride(names, tp, cp, 1, dp), expert_stride = stage_stride(names, etp, 1, ep, edp);
  if (dense_stride != expert_stride)
    check.error(
        "rank_order",
        fmt::format("with {} the stages of the dense part lie {} ranks apart and those of the experts {}, wanted "
                    "the same pipelines for both; nearest: tp-cp-ep-dp-pp",
                    order, dense_stride, expert_stride));
}

}  // namespace hexad::megatron_check
