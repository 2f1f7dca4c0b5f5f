// ROLL's keys: their types, ROLL's defaults, and what becomes of them here.
#pragma once
#include "core/config/schema/schema.hpp"

namespace hexad::config::roll {

// The keys of a file, except those of strategy_config.
const Schema& roll_schema();
// The same for a file of the DPO pipeline.
const Schema& preference_schema();

// The keys of strategy_config; null for a strategy whose settings have no meaning here.
const Schema* strategy_schema(const std::string& strategy_name);

void add_pipeline(Schema& schema);   // the run: names, steps, lengths, checkpoints
void add_algorithm(Schema& schema);  // advantages, loss, masks
void add_roles(Schema& schema);      // actor_train, actor_infer, reference, validation, ...
void add_rewards(Schema& schema);
void add_preferences(Schema& schema);  // the DPO pipeline's own
void add_megatron(Schema& schema);
void add_deepspeed(Schema& schema);
void add_fsdp2(Schema& schema);
void add_sglang(Schema& schema);

}  // namespace hexad::config::roll
