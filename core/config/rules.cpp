#include "core/config/rules.hpp"

#include "core/base/error.hpp"
#include "core/config/defaults.hpp"
#include "core/config/interpolation_grammar.hpp"
#include "lib/model/error.hpp"

namespace hexad::config {

const Node* RuleContext::value(const std::string& path) const {
  if (const Node* found = root_.find(path)) return found->is_null() ? nullptr : found;
  const Key* key = defaults_from_.find(path);
  if (!key || key->default_yaml.empty() || has_interpolation(key->default_yaml)) return nullptr;
  defaults_.push_back(std::make_unique<Node>(default_value(key->default_yaml)));
  return defaults_.back()->is_null() ? nullptr : defaults_.back().get();
}

bool RuleContext::flag(const std::string& path) const {
  const Node* node = value(path);
  return node && node->is_bool() && node->as_bool();
}

std::optional<int64_t> RuleContext::integer(const std::string& path) const {
  const std::optional<double> found = number(path);
  if (!found || *found != static_cast<double>(static_cast<int64_t>(*found))) return std::nullopt;
  return static_cast<int64_t>(*found);
}

std::optional<double> RuleContext::number(const std::string& path) const {
  const Node* node = value(path);
  if (!node || !node->is_number()) return std::nullopt;
  const double number = node->as_double();
  if (!(number > -9e15 && number < 9e15)) return std::nullopt;
  return number;
}

std::optional<std::string> RuleContext::text(const std::string& path) const {
  const Node* node = value(path);
  if (!node || !node->is_string()) return std::nullopt;
  return node->as_string();
}

std::string RuleContext::backend() const {
  if (const std::optional<std::string> named = text("policy.backend")) return *named;
  return flag("policy.megatron_cfg.enabled") ? "megatron" : "dtensor";
}

std::optional<model::ModelShape> RuleContext::model_shape() const {
  const std::optional<std::string> name = text("policy.model_name");
  if (!name) return std::nullopt;
  const Node* overrides = root_.find("policy.hf_config_overrides");
  try {
    return model::read_model_shape(*name, overrides ? overrides->to_json() : nlohmann::ordered_json());
  } catch (const model::Error& error) {
    fail(ErrorKind::data, "{}", error.what());
  }
}

std::optional<int64_t> RuleContext::ranks() const {
  constexpr int64_t kMost = 1'000'000;
  const std::optional<int64_t> devices = integer("cluster.gpus_per_node"), nodes = integer("cluster.num_nodes");
  if (!devices || !nodes || *devices < 1 || *nodes < 1 || *devices > kMost || *nodes > kMost) return std::nullopt;
  return *devices * *nodes;
}

std::optional<int64_t> RuleContext::generation_ranks() const {
  if (algorithm() != Algorithm::grpo) return 0;
  const std::string at = "policy.generation.colocated.";
  const Node* colocated = value(at + "enabled");
  if (!colocated || !colocated->is_bool() || colocated->as_bool()) return 0;
  const int64_t nodes = integer("cluster.num_nodes").value_or(1);
  const std::optional<int64_t> devices = integer(at + "resources.gpus_per_node");
  if (nodes == 1) return devices;
  const std::optional<int64_t> own = integer(at + "resources.num_nodes");
  return own ? std::optional(*own * integer("cluster.gpus_per_node").value_or(1)) : std::nullopt;
}

std::optional<int64_t> RuleContext::training_ranks() const {
  const std::optional<int64_t> all = ranks(), apart = generation_ranks();
  if (!all || !apart || *apart < 0 || *apart >= *all) return std::nullopt;
  return *all - *apart;
}

std::optional<int64_t> RuleContext::data_parallel_size() const {
  const std::optional<int64_t> world = training_ranks();
  if (!world) return std::nullopt;
  std::vector<std::string> sizes;
  if (backend() == "dtensor") {
    for (const char* size : {"tensor_parallel_size", "context_parallel_size"})
      sizes.push_back(std::string("policy.dtensor_cfg.") + size);
  } else if (backend() == "megatron") {
    for (const char* size : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"})
      sizes.push_back(std::string("policy.megatron_cfg.") + size);
  } else {
    return std::nullopt;
  }
  int64_t model = 1;
  for (const std::string& size : sizes) {
    const std::optional<int64_t> ranks = integer(size);
    if (!ranks || *ranks < 1 || *ranks > 1'000'000) return std::nullopt;
    model *= *ranks;
  }
  return *world % model == 0 ? std::optional(*world / model) : std::nullopt;
}

void RuleContext::add(Problem::Severity severity, const std::string& path, std::string message) {
  // Of a key that is absent, the nearest section that is there gives the place.
  const Node* node = root_.find(path);
  for (std::string above = path; !node && !above.empty();) {
    const size_t dot = above.rfind('.');
    above = dot == std::string::npos ? "" : above.substr(0, dot);
    node = root_.find(above);
  }
  problems_.push_back({severity, node->location(), path, std::move(message)});
}

}  // namespace hexad::config
