#include "plugins/megatron/local_weights.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "modeling/error.hpp"

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;

int64_t elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool is_embedding(const modeling::WeightInfo& info) { return info.hf_name == modeling::kEmbeddingName; }

int64_t layer_of(const modeling::WeightInfo& info) { return std::stoll(info.unit.substr(info.unit.find('.') + 1)); }

const char* name_of(int32_t which) {
  return which == HEXAD_WEIGHTS_REFERENCE ? "reference" : which == HEXAD_WEIGHTS_SNAPSHOT ? "snapshot" : "unknown";
}

}  // namespace

std::optional<modeling::TensorPart> part_at(const Settings& settings, const layout::RankCoordinates& at,
                                            const modeling::WeightInfo& info) {
  const std::optional<int64_t> expert = modeling::expert_of(info);
  if (!expert) return modeling::tensor_part(settings.model, info, at.tp, settings.sizes.tensor);
  const int64_t each = settings.model.moe->num_experts / settings.sizes.expert;
  if (*expert / each != at.ep) return std::nullopt;
  return modeling::tensor_part(settings.model, info, at.etp, settings.expert_tensor());
}

bool stage_holds(const modeling::ModelConfig& config, const layout::Stage& stage, const modeling::WeightInfo& info) {
  if (is_embedding(info)) return stage.embedding || (stage.loss && config.tie_word_embeddings);
  if (info.unit == "head") return stage.loss;
  const int64_t layer = layer_of(info);
  return stage.layers.begin <= layer && layer < stage.layers.end;
}

LocalWeights::LocalWeights(const Settings& settings, const Groups& groups, const layout::LayerPlacement& placement,
                           at::Device device)
    : settings_(settings), groups_(groups), device_(device), table_(modeling::weight_table(settings.model)) {
  const std::vector<layout::Stage>& stages = placement.stages[static_cast<size_t>(groups.at.pp)];
  std::vector<layout::BufferParam> params;
  for (const modeling::WeightInfo& info : table_) {
    bool held = false, embeds = false;
    for (const layout::Stage& stage : stages) {
      held |= stage_holds(settings.model, stage, info);
      embeds |= stage.embedding;
    }
    const std::optional<modeling::TensorPart> part = part_at(settings, groups.at, info);
    if (!held || !part) continue;
    LocalWeight weight{info, *part, modeling::expert_of(info).has_value(), is_embedding(info) && !embeds, {}};
    layout::BufferParam param{elements(weight.part.slice.shape)};
    param.expert = weight.expert;
    params.push_back(param);
    index_[info.hf_name] = weights_.size();
    weights_.push_back(std::move(weight));
  }
  layout::BufferOptions options;
  options.bucket_size = settings.bucket_size;
  options.data_parallel = groups.dp_cp.size();
  options.expert_data_parallel = groups.edp.size();
  options.distributed_optimizer = settings.use_distributed_optimizer;
  int64_t end = 0;
  for (layout::BufferLayout& buffer : layout::buffer_layouts(params, options)) {
    for (const layout::BufferSlot& slot : buffer.slots)
      weights_[slot.param].in_buffer = {end + slot.range.begin, end + slot.range.end};
    const int64_t begin = std::exchange(end, end + buffer.numel());
    buffers_.push_back({std::move(buffer), begin, {}});
    buffers_.back().owners = buffers_.back().layout.expert ? groups.edp : groups.dp_cp;
  }
  parameters_ = at::zeros({end}, at::TensorOptions(device).dtype(settings.compute_dtype));
}

const WeightBuffer& LocalWeights::buffer_of(const LocalWeight& weight) const {
  return *std::find_if(buffers_.begin(), buffers_.end(),
                       [&](const WeightBuffer& buffer) { return buffer.layout.expert == weight.expert; });
}

const LocalWeight* LocalWeights::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &weights_[found->second];
}

at::Tensor& LocalWeights::gradients() {
  if (!gradients_.defined()) gradients_ = at::zeros(parameters_.sizes(), parameters_.options().dtype(at::kFloat));
  return gradients_;
}

at::Tensor LocalWeights::slice_of(const at::Tensor& flat, const LocalWeight& weight) const {
  return flat.narrow(0, weight.in_buffer.begin, weight.in_buffer.size()).view(weight.part.slice.shape);
}

LocalWeights::Leaves LocalWeights::bind(const at::Tensor& flat) const {
  const at::NoGradGuard no_grad;
  Leaves leaves;
  for (const LocalWeight& weight : weights_) {
    // Detached from the buffer's views, so that writing to the buffer is no in-place change of a leaf.
    at::Tensor leaf = at::empty({0}, flat.options());
    leaf.set_(flat.storage(), flat.storage_offset() + weight.in_buffer.begin, weight.part.slice.shape);
    leaves[weight.info.hf_name] = leaf.requires_grad_(true);
  }
  return leaves;
}

const LocalWeights::Leaves& LocalWeights::leaves(int32_t which) {
  if (which == HEXAD_WEIGHTS_CURRENT) {
    if (current_.empty()) current_ = bind(parameters_);
    return current_;
  }
  const at::Tensor& kept = flat(which);
  if (other_which_ != which) {
    other_ = bind(kept.to(at::TensorOptions(device_).dtype(settings_.compute_dtype)));
    other_which_ = device_.is_cpu() ? which : -1;  // a GPU does not hold a second model between calls
  }
  return other_;
}

void LocalWeights::add_gradient(const LocalWeight& weight, const at::Tensor& grad) {
  const at::NoGradGuard no_grad;
  slice_of(gradients(), weight).add_(grad);
}

void LocalWeights::sum_partial_gradients() {
  const at::NoGradGuard no_grad;
  std::vector<std::pair<at::Tensor, modeling::Pending>> under_way;
  const auto sum = [&](const LocalWeight& weight, const modeling::Group& group) {
    if (group.size() == 1) return;
    const at::Tensor grad = slice_of(gradients(), weight);
    under_way.emplace_back(grad, group.all_reduce(grad));
  };
  for (const LocalWeight& weight : weights_) {
    sum(weight,
        modeling::sum_group(weight.part.gradient, {groups_.tp, settings_.sequence_parallel}, groups_.equal_heads));
  }
  const LocalWeight* embedding = settings_.model.tie_word_embeddings ? find(modeling::kEmbeddingName) : nullptr;
  if (embedding) sum(*embedding, groups_.embedding);
  for (auto& [grad, pending] : under_way) pending.wait();
}

int32_t LocalWeights::kept_kind(int32_t which) {
  if (which != HEXAD_WEIGHTS_REFERENCE && which != HEXAD_WEIGHTS_SNAPSHOT)
    sdk::fail(HEXAD_INVALID_ARGUMENT, "weights %d cannot be kept: wanted reference (1) or snapshot (2)", which);
  return which;
}

void LocalWeights::keep(int32_t which) {
  kept_[kept_kind(which)] = parameters_.to(at::TensorOptions(at::kCPU).dtype(settings_.compute_dtype),
                                           /*non_blocking=*/false, /*copy=*/true);
  if (other_which_ == which) other_which_ = -1;
}

const at::Tensor& LocalWeights::flat(int32_t which) const {
  if (which == HEXAD_WEIGHTS_CURRENT) return parameters_;
  const auto found = kept_.find(kept_kind(which));
  if (found == kept_.end())
    sdk::fail(HEXAD_FAILED_PRECONDITION, "no %s weights are kept: call keep or load first", name_of(which));
  return found->second;
}

void LocalWeights::set(int32_t which, const std::function<at::Tensor(const LocalWeight&)>& fill) {
  const at::NoGradGuard no_grad;
  const bool current = which == HEXAD_WEIGHTS_CURRENT;
  const at::Tensor flat =
      current ? parameters_
              : at::zeros(parameters_.sizes(), at::TensorOptions(at::kCPU).dtype(settings_.compute_dtype));
  for (const LocalWeight& weight : weights_) slice_of(flat, weight).copy_(fill(weight));
  if (current) return;
  kept_[kept_kind(which)] = flat;
  if (other_which_ == which) other_which_ = -1;
}

int64_t LocalWeights::kept_bytes() const {
  int64_t bytes = 0;
  for (const auto& [which, flat] : kept_) bytes += static_cast<int64_t>(flat.nbytes());
  return bytes;
}

}  // namespace hexad::megatron
