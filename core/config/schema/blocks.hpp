// The blocks of the schema, one function a file.
#pragma once
#include "core/config/schema/schema.hpp"

namespace hexad::config {

void add_grpo(Schema& schema);
void add_supervised(Schema& schema);  // sft, dpo, rm
void add_loss_fn(Schema& schema);
void add_checkpointing(Schema& schema);
void add_policy(Schema& schema);
void add_batching(Schema& schema);
void add_optimizer(Schema& schema);
void add_generation(Schema& schema);
void add_data(Schema& schema);
void add_env(Schema& schema);
void add_logger(Schema& schema);
void add_cluster(Schema& schema);
void add_plugins(Schema& schema);
void add_eval(Schema& schema);
void add_compat(Schema& schema);
void add_other_algorithms(Schema& schema);

}  // namespace hexad::config
