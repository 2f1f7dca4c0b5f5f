#include "modeling/backend/router_replay.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hexad/services.hpp>

#include <algorithm>
#include <numeric>

#include "modeling/backend/tensor_view.hpp"

namespace hexad::modeling {
namespace {

std::vector<int64_t> host_values(const at::Tensor& values) {
  const at::Tensor host = values.cpu().to(at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

// Everyone's list, by rank.
std::vector<std::vector<int64_t>> gather_lists(const std::vector<int64_t>& mine, at::Device device,
                                               const Group& group) {
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  const at::Tensor sizes = at::empty({group.size()}, options);
  group.all_gather(sizes, at::full({1}, static_cast<int64_t>(mine.size()), options)).wait();
  const std::vector<int64_t> counts = host_values(sizes);
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::vector<int64_t>> lists(counts.size());
  if (most == 0) return lists;
  std::vector<int64_t> padded = mine;
  padded.resize(static_cast<size_t>(most));
  const at::Tensor all = at::empty({group.size() * most}, options);
  group.all_gather(all, at::tensor(padded, at::kLong).to(device)).wait();
  const std::vector<int64_t> flat = host_values(all);
  for (size_t r = 0; r < lists.size(); ++r) {
    const auto begin = flat.begin() + static_cast<int64_t>(r) * most;
    lists[r].assign(begin, begin + counts[r]);
  }
  return lists;
}

// Rows for each rank -> rows from each rank: parts[r] goes to rank r.
at::Tensor exchange(const std::vector<at::Tensor>& parts, const std::vector<int64_t>& receive, at::Device device,
                    const Group& group) {
  std::vector<int64_t> send;
  for (const at::Tensor& part : parts) send.push_back(part.size(0));
  const at::Tensor in = at::cat(parts).to(device).contiguous();
  const int64_t rows = std::accumulate(receive.begin(), receive.end(), int64_t{0});
  const at::Tensor out = at::empty({rows, in.size(1)}, in.options());
  group.all_to_all(out, in, receive, send).wait();
  return out.cpu();
}

constexpr const char* kRoutedExperts = "routed_experts";

// NULL if the batch has none.
const DLTensor* routed_experts(const hexad_batch& batch) {
  for (int64_t i = 0; i < batch.num_tensors; ++i)
    if (std::string_view(batch.tensors[i].name) == kRoutedExperts) return batch.tensors[i].tensor;
  return nullptr;
}

// The first token of int16 [T, layers, k] that does not go to k different experts in every layer, and is not -1; or -1.
int64_t first_unroutable(const at::Tensor& experts, int64_t num_experts) {
  const int64_t topk = experts.size(2), width = experts.size(1) * topk;
  const int16_t* row = experts.const_data_ptr<int16_t>();
  for (int64_t token = 0; token < experts.size(0); ++token, row += width) {
    if (std::all_of(row, row + width, [](int16_t expert) { return expert == -1; })) continue;
    for (const int16_t* layer = row; layer < row + width; layer += topk)
      for (int64_t i = 0; i < topk; ++i)
        if (layer[i] < 0 || layer[i] >= num_experts || std::find(layer, layer + i, layer[i]) != layer + i) return token;
  }
  return -1;
}

}  // namespace

ReplaySource replay_source(const sdk::Config& policy, const ModelConfig& model) {
  if (!policy.get("router_replay.enabled", false)) return ReplaySource::none;
  if (!model.moe)
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.router_replay.enabled: model_type '%s' has no experts to replay the choice of; set it to false",
              model.family.c_str());
  const std::string source = policy.get("router_replay.source", "rollout");
  if (source == "rollout") return ReplaySource::rollout;
  if (source == "logprobs") return ReplaySource::logprobs;
  sdk::fail(HEXAD_INVALID_ARGUMENT, "router_replay.source: got '%s', wanted rollout or logprobs", source.c_str());
}

std::span<const char* const> batch_inputs(ReplaySource source) {
  static const char* const inputs[] = {"input_ids", kRoutedExperts};
  return {inputs, source == ReplaySource::rollout ? size_t{2} : size_t{1}};
}

RouterReplay::RouterReplay(ReplaySource source, const ModelConfig& model, const std::vector<int64_t>& layers,
                           at::Device device, const Ranks& ranks)
    : source_(source),
      topk_(model.moe->routing.topk),
      num_experts_(model.moe->num_experts),
      device_(device),
      ranks_(ranks) {
  for (int64_t layer : layers) place_.emplace(layer, static_cast<int64_t>(place_.size()));
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    if (!model.has_experts(layer)) continue;
    if (place_.count(layer)) columns_.push_back(all_layers_);
    ++all_layers_;
  }
}

RouterReplay::Key RouterReplay::key_of(const Batch& batch, int64_t sequence) {
  const at::Tensor ids = from_dl(batch.from->tensors[0].tensor, "input_ids").cpu().contiguous();
  const int64_t begin = batch.from->cu_seqlens[sequence], end = batch.from->cu_seqlens[sequence + 1];
  uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (int64_t i = begin; i < end; ++i)
    hash = (hash ^ static_cast<uint64_t>(ids.const_data_ptr<int64_t>()[i])) * 1099511628211ull;
  return {static_cast<int64_t>(hash), end - begin};
}

void RouterReplay::begin_logprobs(std::span<const hexad_batch* const> batches) {
  kept_.clear();
  if (source_ != ReplaySource::rollout) return;
  std::string wrong;
  for (size_t b = 0; b < batches.size() && wrong.empty() && !place_.empty(); ++b)
    if (!is_empty(*batches[b])) wrong = fault_of(*batches[b], b, /*required=*/false);
  agree(wrong);
}

void RouterReplay::start_logprobs(const std::vector<Batch>& batches) {
  finish();
  if (source_ == ReplaySource::rollout) prepare_given(batches);
  pass_ = source_ == ReplaySource::rollout ? Pass::replayed : Pass::recorded;
}

void RouterReplay::start_replay(const std::vector<Batch>& batches) {
  const at::NoGradGuard no_grad;
  finish();
  std::string wrong;
  if (source_ == ReplaySource::logprobs && !place_.empty()) wrong = prepare_recorded(batches);
  for (size_t b = 0; b < batches.size() && wrong.empty() && source_ == ReplaySource::rollout && !place_.empty(); ++b)
    wrong = fault_of(*batches[b].from, b, /*required=*/true);
  agree(wrong);
  if (source_ == ReplaySource::rollout) prepare_given(batches);
  pass_ = Pass::replayed;
}

void RouterReplay::finish() {
  pass_ = Pass::other;
  recording_.clear();
  prepared_.clear();
}

void RouterReplay::apply(const MicroBatch& batch, int64_t layer, MoeRun& run) {
  if (pass_ == Pass::replayed) run.route.selected = selected(batch, layer);
  if (pass_ == Pass::recorded && !batch.router_rows.stands_in)
    run.chosen = [this, layer, &batch](const at::Tensor& experts) { record(batch, layer, experts); };
}

void RouterReplay::record(const MicroBatch& batch, int64_t layer, const at::Tensor& experts) {
  const at::NoGradGuard no_grad;
  at::Tensor& all = recording_[&batch];
  const int64_t layers = static_cast<int64_t>(place_.size());
  if (!all.defined()) all = at::zeros({batch.tokens, layers, topk_}, experts.options().dtype(at::kInt));
  const at::Tensor rows = batch.router_rows.padding.logical_not().nonzero().squeeze(1);
  all.select(1, place_.at(layer))
      .index_copy_(0, batch.router_rows.tokens.index_select(0, rows), experts.index_select(0, rows).to(at::kInt));
}

void RouterReplay::keep(const std::vector<Batch>& batches) {
  if (pass_ != Pass::recorded) return;
  for (const Batch& batch : batches) {
    auto found = recording_.extract(batch.batch);
    if (found.empty()) continue;  // no layer with experts here
    ranks_.shared.all_reduce(found.mapped()).wait();
    const at::Tensor all = found.mapped().cpu().to(at::kShort).flatten(1);
    for (int64_t s = 0; s < batch.from->num_sequences; ++s)
      kept_[key_of(batch, s)] = all.slice(0, batch.from->cu_seqlens[s], batch.from->cu_seqlens[s + 1]).clone();
  }
}

// Asks all replicas for sequences; whoever has them sends them.
void RouterReplay::fetch(const std::vector<Key>& missing) {
  const Group& group = ranks_.replicas;
  std::vector<int64_t> flat;
  for (const auto& [hash, length] : missing) flat.insert(flat.end(), {hash, length});
  const std::vector<std::vector<int64_t>> wanted = gather_lists(flat, device_, group);
  const int64_t width = static_cast<int64_t>(place_.size()) * topk_;
  std::vector<at::Tensor> keys, rows;
  std::vector<int64_t> sent_keys, sent_rows;
  for (const std::vector<int64_t>& list : wanted) {
    std::vector<int64_t> found;
    std::vector<at::Tensor> experts = {at::empty({0, width}, at::kInt)};
    for (size_t i = 0; i < list.size(); i += 2) {
      const auto entry = kept_.find({list[i], list[i + 1]});
      if (entry == kept_.end()) continue;
      found.insert(found.end(), {list[i], list[i + 1]});
      experts.push_back(entry->second.to(at::kInt));
    }
    keys.push_back(at::tensor(found, at::kLong).view({-1, 2}));
    rows.push_back(at::cat(experts));
    sent_keys.push_back(keys.back().size(0)), sent_rows.push_back(rows.back().size(0));
  }
  const std::vector<std::vector<int64_t>> all_keys = gather_lists(sent_keys, device_, group),
                                          all_rows = gather_lists(sent_rows, device_, group);
  std::vector<int64_t> receive_keys, receive_rows;
  for (size_t r = 0; r < all_keys.size(); ++r) {
    receive_keys.push_back(all_keys[r][static_cast<size_t>(group.rank())]);
    receive_rows.push_back(all_rows[r][static_cast<size_t>(group.rank())]);
  }
  const std::vector<int64_t> got = host_values(exchange(keys, receive_keys, device_, group));
  const at::Tensor experts = exchange(rows, receive_rows, device_, group).to(at::kShort);
  int64_t begin = 0;
  for (size_t i = 0; i < got.size(); begin += got[i + 1], i += 2)
    kept_[{got[i], got[i + 1]}] = experts.slice(0, begin, begin + got[i + 1]).clone();
}

std::string RouterReplay::prepare_recorded(const std::vector<Batch>& batches) {
  std::vector<Key> missing;
  const auto look_up = [&](const auto& on_missing) {
    for (size_t b = 0; b < batches.size(); ++b)
      for (int64_t s = 0; s < batches[b].from->num_sequences; ++s)
        if (const Key key = key_of(batches[b], s); !kept_.count(key)) on_missing(key, b, s);
  };
  look_up([&](const Key& key, size_t, int64_t) { missing.push_back(key); });
  if (ranks_.replicas.size() > 1) fetch(missing);
  std::string lost;
  look_up([&](const Key& key, size_t b, int64_t s) {
    if (lost.empty()) lost = fmt::format("sequence {} of micro-batch {} ({} tokens)", s, b, key.second);
  });
  if (!lost.empty())
    return lost +
           " was not in the last log-prob pass of the current weights: run that pass over what is trained on, or set "
           "policy.router_replay.enabled to false";
  for (const Batch& batch : batches) {
    std::vector<at::Tensor> parts;
    for (int64_t s = 0; s < batch.from->num_sequences; ++s) parts.push_back(kept_.at(key_of(batch, s)));
    prepared_[batch.batch] =
        at::cat(parts).view({batch.batch->tokens, static_cast<int64_t>(place_.size()), topk_}).to(device_);
  }
  return "";
}

std::string RouterReplay::fault_of(const hexad_batch& batch, size_t index, bool required) const {
  const DLTensor* given = routed_experts(batch);
  if (!given && !required) return "";
  if (!given)
    return fmt::format(
        "micro-batch {} has no routed_experts: draw it with a generator that gives them, or set "
        "policy.router_replay.source to logprobs",
        index);
  const at::Tensor experts = from_dl(given, kRoutedExperts).cpu().contiguous();
  const std::vector<int64_t> wanted = {batch.num_tokens, all_layers_, topk_};
  if (experts.scalar_type() != at::kShort || experts.sizes().vec() != wanted)
    return fmt::format(
        "routed_experts of micro-batch {}: got {} [{}], wanted int16 [{}] (tokens, layers with experts, "
        "experts a token)",
        index, c10::toString(experts.scalar_type()), fmt::join(experts.sizes(), ", "), fmt::join(wanted, ", "));
  const int64_t token = first_unroutable(experts, num_experts_);
  if (token < 0) return "";
  return fmt::format(
      "routed_experts of micro-batch {}: token {}: wanted {} different experts below {} a layer, or -1 "
      "throughout",
      index, token, topk_, num_experts_);
}

void RouterReplay::prepare_given(const std::vector<Batch>& batches) {
  if (place_.empty()) return;
  const at::Tensor columns = at::tensor(columns_, at::kLong);
  for (const Batch& batch : batches)
    if (const DLTensor* given = routed_experts(*batch.from))
      prepared_[batch.batch] = from_dl(given, kRoutedExperts).cpu().index_select(1, columns).to(device_);
}

void RouterReplay::agree(const std::string& wrong) {
  const at::Tensor failed = at::full({1}, wrong.empty() ? 0.0f : 1.0f, at::TensorOptions(device_).dtype(at::kFloat));
  ranks_.world.all_reduce(failed, Reduce::max).wait();
  if (failed.item<float>() == 0) return;
  finish();
  sdk::fail(HEXAD_FAILED_PRECONDITION, "router replay: %s",
            wrong.empty() ? "another rank cannot: its report says why" : wrong.c_str());
}

// -1, the router's own choice, for what is nobody's token.
at::Tensor RouterReplay::selected(const MicroBatch& batch, int64_t layer) const {
  const RouterRows& rows = batch.router_rows;
  const at::Tensor own = at::full({rows.tokens.size(0), topk_}, -1, rows.tokens.options());
  const auto found = prepared_.find(&batch);
  if (found == prepared_.end()) return own;
  const at::Tensor chosen =
      found->second.select(1, place_.at(layer)).index_select(0, rows.tokens.clamp_min(0)).to(at::kLong);
  return at::where(rows.padding.unsqueeze(1), own, chosen);
}

}  // namespace hexad::modeling
