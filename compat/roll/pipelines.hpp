// ROLL's pipelines that are not translated: how a file of one is known, and what to write here in its place.
#pragma once
#include <optional>

#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

// The error for a file of another pipeline than RLVR; nothing where `file` is of RLVR.
std::optional<Problem> other_pipeline(const yaml::Node& file);

// Their keys, so that none of them is called unknown.
void add_other_pipelines(Schema& schema);

}  // namespace hexad::config::roll
