#include "modeling/parallel/context/attention.hpp"

#include <algorithm>
#include <utility>

#include "modeling/layout/context_shards.hpp"

namespace hexad::modeling {
namespace {

using enum ContextExchange;

constexpr std::pair<ContextExchange, const char*> kExchanges[] = {
    {p2p, "p2p"}, {all_gather, "all_gather"}, {a2a, "a2a"}, {a2a_p2p, "a2a+p2p"}};

}  // namespace

std::optional<ContextExchange> parse_context_exchange(const std::string& text) {
  for (const auto& [exchange, name] : kExchanges)
    if (text == name) return exchange;
  return std::nullopt;
}

ContextAttention::ContextAttention(const ModelConfig& config, PackedLayout row, const ContextParallel& ranks)
    : windows_(config.sliding_window), row_(std::move(row)), ranks_(ranks) {
  const auto wants = [&](ContextExchange exchange) {
    return std::find(ranks.exchange.begin(), ranks.exchange.end(), exchange) != ranks.exchange.end();
  };
  const int64_t size = ranks.group.size(), inner = ranks.inner.size();
  const at::Device device = row_.positions.device();
  row_.positions.reset();  // of the whole row: not kept
  const auto exchange_among = [&](const Group& group, int64_t first) {
    return HeadExchange(group, layout::merged_positions(row_.offsets, size, first, group.size()), device);
  };
  if (wants(a2a)) all_heads_ = exchange_among(ranks.group, 0);
  if (wants(a2a_p2p)) inner_heads_ = exchange_among(ranks.inner, ranks.group.rank() / inner * inner);
}

ContextExchange ContextAttention::exchange(int64_t layer) const {
  if (ranks_.exchange.empty()) return p2p;
  return ranks_.exchange.size() == 1 ? ranks_.exchange[0] : ranks_.exchange.at(static_cast<size_t>(layer));
}

at::Tensor ContextAttention::attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t window = windows_.at(static_cast<size_t>(layer));
  const at::IntArrayRef cu_seqlens = row_.offsets;
  switch (exchange(layer)) {
    case p2p: return ring_attention(q, k, v, cu_seqlens, window, ranks_.group);
    case all_gather: return gathered_attention(q, k, v, cu_seqlens, window, ranks_.group);
    case a2a:
      return all_heads_->attend(q, k, v, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return packed_attention(q, k, v, row_, window);
      });
    case a2a_p2p:
      return inner_heads_->attend(q, k, v, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        return ring_attention(q, k, v, cu_seqlens, window, ranks_.outer);
      });
  }
  return {};
}

}  // namespace hexad::modeling
