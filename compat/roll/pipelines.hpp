// ROLL's pipelines beside RLVR: how a file of one is known, and what to write here in place of one that is not
// translated.
#pragma once
#include <optional>

#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// The error for a file of a pipeline that is not translated, with all of its keys; nothing for another file.
std::optional<Problem> other_pipeline(const yaml::Node& file);

// True for a file of the DPO pipeline.
bool is_preferences(const yaml::Node& file);

// Their keys, so that none of them is called unknown.
void add_other_pipelines(Schema& schema);

}  // namespace hexad::config::roll
