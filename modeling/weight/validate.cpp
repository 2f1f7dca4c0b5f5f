#include "modeling/weight/validate.hpp"

#include <set>

#include <ATen/Functions.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

constexpr size_t kListed = 10;

// N of "model.layers.N.", or -1.
int64_t layer_of(const std::string& name) {
  const std::string prefix = "model.layers.";
  if (!name.starts_with(prefix)) return -1;
  int64_t layer = 0;
  size_t at = prefix.size();
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at) layer = layer * 10 + (name[at] - '0');
  return at > prefix.size() && at < name.size() && name[at] == '.' ? layer : -1;
}

bool is_ignorable(const std::string& name, bool tied) {
  const std::string buffer = "rotary_emb.inv_freq";
  const bool is_buffer = name.size() >= buffer.size() && name.ends_with(buffer);
  return is_buffer || (tied && name == "lm_head.weight");
}

}  // namespace

std::vector<std::string> validate_weights(const SafetensorsReader& reader, const std::vector<WeightInfo>& table) {
  std::vector<std::string> missing;
  std::set<std::string> used;
  for (const WeightInfo& info : table) {
    used.insert(info.hf_name);
    if (!reader.contains(info.hf_name)) missing.push_back(info.hf_name);
  }
  if (!missing.empty()) {
    const size_t count = missing.size();
    missing.resize(std::min(count, kListed));
    fail("{}: {} of {} weights are missing: {}{}", reader.origin(), count, table.size(), fmt::join(missing, ", "),
         count > kListed ? ", ..." : "");
  }
  for (const WeightInfo& info : table) {
    const StoredTensor& stored = reader.entries().at(info.hf_name);
    if (stored.shape != info.shape) {
      fail("{}: '{}' has shape [{}], the config wants [{}]", stored.file, info.hf_name, fmt::join(stored.shape, ", "),
           fmt::join(info.shape, ", "));
    }
    if (!at::isFloatingType(stored.dtype)) {
      fail("{}: '{}' has dtype {}, wanted F32, BF16 or F16", stored.file, info.hf_name, c10::toString(stored.dtype));
    }
  }
  const bool tied = !used.count("lm_head.weight");
  int64_t last_layer = -1, beyond = 0;
  for (const WeightInfo& info : table) last_layer = std::max(last_layer, layer_of(info.hf_name));
  std::vector<std::string> warnings;
  for (const auto& [name, stored] : reader.entries()) {
    if (used.count(name) || is_ignorable(name, tied)) continue;
    if (last_layer >= 0 && layer_of(name) > last_layer) {
      ++beyond;
    } else {
      warnings.push_back(fmt::format("{}: '{}' is not used by this model", stored.file, name));
    }
  }
  if (beyond > 0) {
    warnings.push_back(
        fmt::format("{}: {} weights of layers beyond the config's {} (multi-token prediction) are left out",
                    reader.origin(), beyond, last_layer + 1));
  }
  return warnings;
}

void require_finite(const at::Tensor& tensor, const std::string& name, const std::string& file) {
  // A sum is finite only if every element is (or would overflow: then look at the elements).
  if (at::isfinite(tensor.sum(at::kDouble)).item<bool>()) return;
  const at::Tensor bad = at::isfinite(tensor).logical_not().flatten().nonzero();
  if (bad.numel() == 0) return;
  const int64_t first = bad[0].item<int64_t>();
  fail("{}: '{}' holds {} values that are not finite; the first is {} at element {}", file, name, bad.size(0),
       tensor.flatten()[first].item<double>(), first);
}

}  // namespace hexad::modeling
