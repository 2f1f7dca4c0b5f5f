#include "core/config/megatron_overrides.hpp"

#include "core/config/schema/schema.hpp"

namespace hexad::config {

void lift_model_overrides(Node& root) {
  Node* section = root.find("policy.megatron_cfg");
  Node* overrides = section ? section->child("model_overrides") : nullptr;
  if (!overrides || !overrides->is_map()) return;
  Node::Map lifted;
  std::erase_if(overrides->entries(), [&](auto& entry) {
    const bool known = schema().find("policy.megatron_cfg." + entry.first) && entry.first != "model_overrides";
    if (!known || section->child(entry.first)) return false;
    lifted.push_back(std::move(entry));
    return true;
  });
  // The new entries may move the section's, `overrides` among them.
  for (auto& entry : lifted) section->entries().push_back(std::move(entry));
}

}  // namespace hexad::config
