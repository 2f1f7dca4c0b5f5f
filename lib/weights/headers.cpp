#include "lib/weights/headers.hpp"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "lib/base/error.hpp"
#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::weights {
namespace {

namespace fs = std::filesystem;
using model::WeightInfo;
using tensorfile::DType;
using tensorfile::Safetensors;
using tensorfile::SafetensorsEntry;

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
  return name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
}

void require_all(const fs::path& folder, const Safetensors& stored, const std::vector<WeightInfo>& table) {
  std::vector<std::string> missing;
  for (const WeightInfo& info : table)
    if (!stored.find(info.hf_name)) missing.push_back(info.hf_name);
  if (missing.empty()) return;
  const size_t count = missing.size();
  missing.resize(std::min(count, kListed));
  fail(ErrorKind::data, "{}: {} of {} weights are missing: {}{}", folder.string(), count, table.size(),
       fmt::join(missing, ", "), count > kListed ? ", ..." : "");
}

void require_shape(const SafetensorsEntry& entry, const WeightInfo& wanted) {
  const std::string file = entry.file->path().string();
  if (entry.shape != wanted.shape)
    fail(ErrorKind::data, "{}: '{}' has shape [{}], the config wants [{}]", file, entry.name,
         fmt::join(entry.shape, ", "), fmt::join(wanted.shape, ", "));
  if (!tensorfile::is_floating(entry.dtype))
    fail(ErrorKind::data, "{}: '{}' has dtype {}, wanted F32, BF16 or F16", file, entry.name,
         tensorfile::dtype_name(entry.dtype));
}

std::vector<std::string> unused(const fs::path& folder, const Safetensors& stored,
                                const std::vector<WeightInfo>& table) {
  std::set<std::string> used;
  int64_t last_layer = -1, beyond = 0;
  for (const WeightInfo& info : table) {
    used.insert(info.hf_name);
    last_layer = std::max(last_layer, layer_of(info.hf_name));
  }
  const bool tied = !used.contains("lm_head.weight");
  std::vector<std::string> lines;
  for (const SafetensorsEntry& entry : stored.tensors()) {
    if (used.contains(entry.name) || is_ignorable(entry.name, tied)) continue;
    if (last_layer >= 0 && layer_of(entry.name) > last_layer)
      ++beyond;
    else
      lines.push_back(fmt::format("{}: '{}' is not used by this model", entry.file->path().string(), entry.name));
  }
  std::ranges::sort(lines);
  if (beyond > 0)
    lines.push_back(fmt::format("{}: {} weights of layers beyond the config's {} (multi-token prediction) are left out",
                                folder.string(), beyond, last_layer + 1));
  return lines;
}

// `error` again, as one about quantised weights where config.json, or a file beside it, calls them so: their names,
// shapes and types are others.
[[noreturn]] void fail_to_open(const fs::path& folder, const model::ModelConfig& config, const Error& error) {
  std::string quantization = tensorfile::quantization_of(config.original);
  quantization = quantization.empty() ? tensorfile::quantization_beside(folder) : "config.json: " + quantization;
  if (quantization.empty()) throw error;
  fail(ErrorKind::data, "{} ({})", tensorfile::quantized_text(folder, quantization), error.what());
}

}  // namespace

bool are_in(const fs::path& folder) {
  std::error_code unreadable;
  return fs::exists(folder / "model.safetensors", unreadable) ||
         fs::exists(folder / "model.safetensors.index.json", unreadable);
}

std::string absent(const fs::path& folder) {
  const std::string other = tensorfile::other_weights(folder);
  return fmt::format(
      "'{}': found neither model.safetensors nor model.safetensors.index.json; {}", folder.string(),
      other.empty() ? "to start from random weights, made from its config.json, set policy.random_init_seed" : other);
}

bool is_of_models(DType type) {
  return type != DType::u16 && type != DType::u32 && type != DType::u64 && type != DType::f8_e4m3 &&
         type != DType::f8_e5m2;
}

void require_types(const Safetensors& stored) {
  for (const SafetensorsEntry& entry : stored.tensors())
    if (!is_of_models(entry.dtype))
      fail(ErrorKind::data,
           "{}: tensor \"{}\" has dtype {}, wanted F32, BF16, F16, F64, I64, I32, I16, I8, U8 or BOOL: take the model "
           "in bfloat16 or float32",
           entry.file->path().string(), entry.name, tensorfile::dtype_name(entry.dtype));
}

Weights open(const fs::path& folder, const model::ModelConfig& config, std::vector<WeightInfo> table,
             tensorfile::Pages pages) {
  try {
    Safetensors stored = Safetensors::open(folder, pages);
    require_types(stored);
    if (!stored.find(model::kScoreName))
      std::erase_if(table, [](const WeightInfo& info) { return info.hf_name == model::kScoreName; });
    require_all(folder, stored, table);
    for (const WeightInfo& info : table) require_shape(*stored.find(info.hf_name), info);
    std::vector<std::string> notices = unused(folder, stored, table);
    return {std::move(stored), std::move(notices)};
  } catch (const Error& error) {
    fail_to_open(folder, config, error);
  }
}

}  // namespace hexad::weights
