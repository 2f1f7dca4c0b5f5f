// Rule 16: pipeline_model_parallel_layout.
#include "core/config/pipeline_layout.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kKey = "pipeline_model_parallel_layout";

void check_alone(const MegatronRules& r) {
  for (const char* other : {"num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"}) {
    if (r.given(other)) r.error(kKey, fmt::format("does not go with {}: give one of them", other));
  }
  for (const char* other : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
    if (r.flag(other)) r.error(kKey, fmt::format("does not go with {}: true; nearest: false", other));
  }
}

void check_content(const MegatronRules& r, const PipelineLayout& layout) {
  const std::string &first = layout.stages.front(), &last = layout.stages.back();
  if (!first.starts_with('E') || layout.count('E') != 1) {
    r.error(kKey, fmt::format("the first layer of the first stage must be the one embedding (E), got {} of them and a "
                              "first stage '{}'",
                              layout.count('E'), first));
  }
  if (!last.ends_with('L') || layout.count('L') != 1) {
    r.error(kKey, fmt::format("the last layer of the last stage must be the one loss (L), got {} of them and a last "
                              "stage '{}'",
                              layout.count('L'), last));
  }
  if (layout.count('m') > 0) {
    r.error(kKey, fmt::format("holds {} layers of multi-token prediction (m), which are not trained in this version; "
                              "nearest: none",
                              layout.count('m')));
  }
  const int64_t layers = static_cast<int64_t>(layout.count('t'));
  if (r.model.num_layers && layers != *r.model.num_layers) {
    r.error(kKey, fmt::format("holds {} decoder layers (t), wanted num_hidden_layers {}", layers, *r.model.num_layers));
  }
}

}  // namespace

void check_megatron_layout(const MegatronRules& r) {
  if (!r.given(kKey)) return;
  const Node& value = r.c.root().at(r.path(kKey));
  if (!value.is_string() && !value.is_list()) return;
  check_alone(r);
  const PipelineLayout layout = pipeline_layout(value);
  if (!layout.problem.empty()) return r.error(kKey, layout.problem);
  const int64_t stages = static_cast<int64_t>(layout.stages.size());
  if (stages == 0) return r.error(kKey, "is empty");
  if (stages % r.pp != 0) {
    r.error(kKey, fmt::format("has {} stages, wanted a multiple of pipeline_model_parallel_size {}{}", stages, r.pp,
                              nearest_valid(stages, stages + r.pp, [&](int64_t v) { return v % r.pp == 0; })));
  }
  check_content(r, layout);
}

}  // namespace hexad::config
