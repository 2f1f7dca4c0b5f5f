#include "lib/model/family/mla_config.hpp"

namespace hexad::model {

MlaConfig parse_mla(const ConfigFields& fields, const RopeConfig& rope) {
  MlaConfig config;
  // null means none, and an absent key the default.
  if (fields.has("q_lora_rank") || !fields.mentions("q_lora_rank"))
    config.q_lora_rank = fields.size("q_lora_rank", 1536);
  config.kv_lora_rank = fields.size("kv_lora_rank", 512);
  config.nope_head_dim = fields.count("qk_nope_head_dim", 128);
  config.rope_head_dim = fields.count("qk_rope_head_dim", 64);
  config.v_head_dim = fields.count("v_head_dim", 128);
  config.rope_interleave = fields.boolean("rope_interleave").value_or(true);
  const double mscale = yarn_logit_mscale(rope);
  config.logit_scale = mscale * mscale;
  return config;
}

}  // namespace hexad::model
