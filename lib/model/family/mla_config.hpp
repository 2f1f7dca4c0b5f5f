// Sizes of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).
#pragma once
#include <cstdint>

#include "lib/model/family/config_fields.hpp"
#include "lib/model/family/rope_config.hpp"

namespace hexad::model {

struct MlaConfig {
  int64_t q_lora_rank = 0;  // 0: one matrix makes the queries
  int64_t kv_lora_rank = 0;
  int64_t nope_head_dim = 0;  // of queries and keys, not rotated
  int64_t rope_head_dim = 0;  // of queries and keys, rotated
  int64_t v_head_dim = 0;
  bool rope_interleave = true;  // pairs of neighbours are rotated, instead of i and i + rope_head_dim / 2
  double logit_scale = 1.0;     // beside 1 / sqrt(nope_head_dim + rope_head_dim): yarn's mscale squared

  int64_t qk_head_dim() const { return nope_head_dim + rope_head_dim; }
};

MlaConfig parse_mla(const ConfigFields& fields, const RopeConfig& rope);

}  // namespace hexad::model
