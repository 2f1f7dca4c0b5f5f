#include "core/cluster/refit/refit.hpp"

#include <hexad/abi.h>

#include <numeric>

#include "core/cluster/refit/plan.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kStepBytes = int64_t{256} << 20;

Json on_side(const Piece& piece, bool sends, const std::vector<Layout>& needed) {
  const LayoutSlice& slice = needed[static_cast<size_t>(piece.to)][piece.slice];
  if (sends) return {slice.name, piece.to, piece.box.offsets, piece.box.shape};
  return {piece.slice, piece.from, piece.box.offsets, piece.box.shape};
}

// A rank's part of the plan.
Json part_of(int rank, const RefitPlan& plan, const std::vector<Layout>& needed) {
  Json steps = Json::array();
  for (const auto& pieces : plan.steps) {
    Json step = {{"sends", Json::array()}, {"receives", Json::array()}};
    for (const Piece& piece : pieces) {
      if (piece.from == rank) step["sends"].push_back(on_side(piece, true, needed));
      if (piece.to == rank) step["receives"].push_back(on_side(piece, false, needed));
    }
    steps.push_back(step);
  }
  return {{"steps", steps}, {"needed", needed[static_cast<size_t>(rank)]}};
}

}  // namespace

void Refit::connect() {
  std::vector<Layout> held, needed;
  std::vector<bool> takes_whole;
  for (const Message& answer : workers_.call_all("refit_layout")) {
    held.push_back(answer.header.at("held").get<Layout>());
    needed.push_back(answer.header.at("needed").get<Layout>());
    takes_whole.push_back(answer.header.at("form") == HEXAD_FORM_FULL);
  }
  const Layout whole = whole_weights(held);
  for (int rank = placement_.generators.first; rank < placement_.generators.end(); ++rank)
    if (takes_whole[static_cast<size_t>(rank)]) needed[static_cast<size_t>(rank)] = whole;
  const RefitPlan plan = plan_refit(held, needed, kStepBytes);
  bytes_sent_ = plan.sent;

  std::vector<int> ranks(static_cast<size_t>(workers_.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  workers_.call_all("refit_connect", [&](int rank) {
    Message message;
    message.header = {{"ranks", ranks}, {"name", "refit"}, {"part", part_of(rank, plan, needed)}};
    return message;
  });
  connected_ = true;
}

void Refit::run(int64_t version, bool recompute_kv_cache) {
  if (placement_.apart() && !connected_) connect();
  Message message;
  message.header["version"] = version;
  message.header["recompute_kv_cache"] = recompute_kv_cache;
  workers_.call_all("refit", message);
}

}  // namespace hexad::cluster
