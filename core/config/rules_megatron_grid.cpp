// The two rank grids: dense TP x CP x DP x PP, experts ETP x EP x EDP x PP.
#include "core/base/joined.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

struct Axis {
  const char* key;
  int64_t size;
};

std::string ranks_text(const MegatronRules& r) {
  const int64_t apart = r.c.generation_ranks().value_or(0);
  return fmt::format("{} rank{} (cluster.num_nodes {} x gpus_per_node {}{})", r.world, r.world == 1 ? "" : "s",
                     r.c.integer("cluster.num_nodes").value_or(1), r.c.integer("cluster.gpus_per_node").value_or(1),
                     apart > 0 ? fmt::format(", less {} that generate", apart) : "");
}

// The axis to blame: one that does not divide the world by itself, else the largest.
const Axis& culprit(const std::vector<Axis>& axes, int64_t world) {
  const auto uneven = std::ranges::find_if(axes, [&](const Axis& axis) { return world % axis.size != 0; });
  return uneven != axes.end() ? *uneven : *std::ranges::max_element(axes, {}, &Axis::size);
}

// Rules 1 and 2: the product of the model-parallel sizes divides the world.
void check_product(const MegatronRules& r, const std::vector<Axis>& axes) {
  int64_t product = 1;
  std::vector<std::string> parts;
  for (const Axis& axis : axes) {
    product *= axis.size;
    parts.push_back(fmt::format("{} {}", axis.key, axis.size));
  }
  if (r.world % product == 0) return;
  const Axis& blamed = culprit(axes, r.world);
  const int64_t others = product / blamed.size;
  const int64_t nodes = r.c.integer("cluster.num_nodes").value_or(1);
  std::string mend = nearest_valid(blamed.size, r.world, [&](int64_t v) { return r.world % (v * others) == 0; });
  if (mend.empty()) {
    mend = nearest_valid(r.world / nodes, r.world + product, [&](int64_t v) { return v * nodes % product == 0; });
    if (!mend.empty()) mend.insert(mend.find(':') + 1, " cluster.gpus_per_node");
  }
  r.error(blamed.key,
          fmt::format("{} = {} does not divide the {}{}", joined(parts, " x "), product, ranks_text(r), mend));
}

std::vector<std::string> axes_of(const std::string& order) {
  std::vector<std::string> names(1);
  for (const char c : order) {
    if (c == '-') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
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

// Rule 3: unless pp is outermost, both grids have the same data-parallel size and the same pipelines.
void check_rank_order(const MegatronRules& r) {
  const std::string order = r.text("rank_order").value_or("tp-cp-ep-dp-pp");
  std::vector<std::string> names = axes_of(order), sorted = names;
  std::ranges::sort(sorted);
  if (sorted != std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"}) {
    return r.error("rank_order", fmt::format("got '{}', wanted tp, cp, ep, dp and pp once each, joined by '-': the "
                                             "default is tp-cp-ep-dp-pp, and tp-cp-pp-ep-dp is Megatron's other order",
                                             order));
  }
  if (names.back() == "pp" || r.pp == 1 || r.dp() == 0 || r.edp() == 0) return;
  if (r.dp() != r.edp()) {
    return r.error(
        "rank_order",
        fmt::format("with {} the dense part and the experts need the same data-parallel size, got {} (tensor "
                    "x context {} x {}) and {} (expert tensor x expert {} x {}); nearest: tp-cp-ep-dp-pp",
                    order, r.dp(), r.tp, r.cp, r.edp(), r.etp, r.ep));
  }
  const int64_t dense = stage_stride(names, r.tp, r.cp, 1, r.dp()),
                experts = stage_stride(names, r.etp, 1, r.ep, r.edp());
  if (dense != experts) {
    r.error("rank_order",
            fmt::format("with {} the stages of the dense part lie {} ranks apart and those of the experts "
                        "{}, wanted the same pipelines for both; nearest: tp-cp-ep-dp-pp",
                        order, dense, experts));
  }
}

}  // namespace

void check_megatron_grid(const MegatronRules& r) {
  check_product(
      r,
      {{"tensor_model_parallel_size", r.tp}, {"pipeline_model_parallel_size", r.pp}, {"context_parallel_size", r.cp}});
  if (r.etp * r.ep > 1) {
    check_product(r, {{"expert_tensor_parallel_size", r.etp},
                      {"expert_model_parallel_size", r.ep},
                      {"pipeline_model_parallel_size", r.pp}});
  }
  check_rank_order(r);
}

}  // namespace hexad::config
