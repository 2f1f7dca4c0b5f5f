#include "compat/roll/schema/schema.hpp"

#include "compat/roll/pipelines.hpp"

namespace hexad::config::roll {
namespace {

Schema made_by(void (*add)(Schema&)) {
  Schema schema;
  add(schema);
  return schema;
}

void add_common(Schema& made) {
  add_pipeline(made);
  add_algorithm(made);
  add_roles(made);
  add_rewards(made);
  made.add("hexad", kMap | kNull, "", "NeMo-RL's keys, which win over what this file comes to").open();
}

}  // namespace

const Schema& roll_schema() {
  static const Schema instance = made_by([](Schema& made) {
    add_common(made);
    add_other_pipelines(made);
  });
  return instance;
}

const Schema& preference_schema() {
  static const Schema instance = made_by([](Schema& made) {
    add_common(made);
    add_preferences(made);
    add_other_pipelines(made);
  });
  return instance;
}

const Schema* strategy_schema(const std::string& name) {
  static const Schema megatron = made_by(add_megatron), deepspeed = made_by(add_deepspeed), fsdp2 = made_by(add_fsdp2),
                      sglang = made_by(add_sglang);
  if (name.starts_with("megatron_")) return &megatron;
  if (name.starts_with("deepspeed_")) return &deepspeed;
  if (name.starts_with("fsdp2_")) return &fsdp2;
  if (name == "sglang") return &sglang;
  return nullptr;
}

}  // namespace hexad::config::roll
