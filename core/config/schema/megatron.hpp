// The parts of policy.megatron_cfg, one function a file.
#pragma once
#include "core/config/schema/blocks.hpp"

namespace hexad::config {

// A key below policy.megatron_cfg. An absent one stays absent, so that a configuration without the backend stays short.
Schema::Entry megatron_key(Schema& schema, const std::string& name, Kinds kinds, const char* default_yaml,
                           const char* meaning);

void add_megatron_model(Schema& schema);
void add_megatron_experts(Schema& schema);
void add_megatron_computation(Schema& schema);
void add_megatron_training(Schema& schema);

}  // namespace hexad::config
