#include "core/cluster/refit/refit.hpp"

#include <hexad/abi.h>

#include <numeric>

#include "core/cluster/refit/plan.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kStepBytes = int64_t{256} << 20;

// A rank's part of the plan.
RefitPart part_of(int rank, const RefitPlan& plan, const std::vector<Layout>& needed) {
  RefitPart part{{}, needed[static_cast<size_t>(rank)]};
  for (const auto& pieces : plan.steps) {
    RefitPart::Step& step = part.steps.emplace_back();
    for (const Piece& piece : pieces) {
      const std::string& weight = needed[static_cast<size_t>(piece.to)][piece.slice].name;
      if (piece.from == rank) step.sends.push_back({weight, piece.to, piece.box});
      if (piece.to == rank) step.receives.push_back({piece.slice, piece.from, piece.box});
    }
  }
  return part;
}

}  // namespace

void Refit::connect() {
  std::vector<Layout> held, needed;
  std::vector<bool> takes_whole;
  for (const auto& reply : workers_.call(workers_.all(), protocol::RefitLayout{})) {
    held.push_back(reply.held);
    needed.push_back(reply.needed);
    takes_whole.push_back(reply.form == HEXAD_FORM_FULL);
  }
  const Layout whole = whole_weights(held);
  for (int rank = placement_.generators.first; rank < placement_.generators.end(); ++rank)
    if (takes_whole[static_cast<size_t>(rank)]) needed[static_cast<size_t>(rank)] = whole;
  const RefitPlan plan = plan_refit(held, needed, kStepBytes);
  bytes_sent_ = plan.sent;

  std::vector<int32_t> ranks(static_cast<size_t>(workers_.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  workers_.call<protocol::RefitConnect>(workers_.all(), [&](int rank) {
    return protocol::RefitConnect{.ranks = ranks, .name = "refit", .part = part_of(rank, plan, needed)};
  });
  connected_ = true;
}

void Refit::run(int64_t version, bool recompute_kv_cache) {
  if (placement_.apart() && !connected_) connect();
  workers_.call(workers_.all(), protocol::Refit{.version = version, .recompute_kv_cache = recompute_kv_cache});
}

}  // namespace hexad::cluster
