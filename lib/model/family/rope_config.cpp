#include "lib/model/family/rope_config.hpp"

#include <cmath>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

RopeScaling scaling_of(const std::string& type, const std::string& origin) {
  if (type == "default") return RopeScaling::none;
  if (type == "linear") return RopeScaling::linear;
  if (type == "llama3") return RopeScaling::llama3;
  if (type == "yarn") return RopeScaling::yarn;
  fail("{}: rope type '{}' is not supported; known types: default, linear, llama3, yarn", origin, type);
}

double required(const ConfigFields& fields, const char* key) {
  if (!fields.has(key)) fail("{}: '{}' is missing", fields.origin(), key);
  return *fields.number(key);
}

void parse_scaling(const ConfigFields& fields, int64_t max_position_embeddings, RopeConfig& rope) {
  rope.original_max_position_embeddings = fields.size("original_max_position_embeddings", max_position_embeddings);
  if (rope.scaling == RopeScaling::yarn && !fields.has("factor")) {
    rope.factor = double(max_position_embeddings) / double(rope.original_max_position_embeddings);
  } else {
    rope.factor = required(fields, "factor");
  }
  if (!(rope.factor > 0)) fail("{}: 'factor' is {}, wanted a positive number", fields.origin(), rope.factor);
  if (rope.scaling == RopeScaling::llama3) {
    rope.low_freq_factor = required(fields, "low_freq_factor");
    rope.high_freq_factor = required(fields, "high_freq_factor");
    if (!(rope.high_freq_factor > rope.low_freq_factor)) {
      fail("{}: 'high_freq_factor' is {}, wanted more than 'low_freq_factor' {}", fields.origin(),
           rope.high_freq_factor, rope.low_freq_factor);
    }
  }
  if (rope.scaling == RopeScaling::yarn) {
    rope.attention_factor = fields.number("attention_factor");
    rope.mscale = fields.number("mscale");
    rope.mscale_all_dim = fields.number("mscale_all_dim");
    rope.beta_fast = fields.number("beta_fast").value_or(32.0);
    rope.beta_slow = fields.number("beta_slow").value_or(1.0);
    rope.truncate = fields.boolean("truncate").value_or(true);
  }
}

}  // namespace

RopeConfig parse_rope(const ConfigFields& config, int64_t max_position_embeddings, double default_theta) {
  RopeConfig rope;
  rope.theta = config.number("rope_theta").value_or(default_theta);
  const char* key = config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (config.has(key)) {
    const ConfigFields fields(config.raw(key), config.origin() + ": " + key);
    for (const char* layer_type : {"full_attention", "sliding_attention"}) {
      if (fields.has(layer_type)) fail("{}: different rope for each layer type is not supported", fields.origin());
    }
    rope.theta = fields.number("rope_theta").value_or(rope.theta);
    const std::string type = fields.text("rope_type").value_or(fields.text("type").value_or("default"));
    rope.scaling = scaling_of(type, fields.origin());
    if (fields.number("partial_rotary_factor").value_or(1.0) != 1.0) {
      fail("{}: partial_rotary_factor other than 1 is not supported", fields.origin());
    }
    if (rope.scaling != RopeScaling::none) parse_scaling(fields, max_position_embeddings, rope);
  }
  if (config.number("partial_rotary_factor").value_or(1.0) != 1.0) {
    fail("{}: partial_rotary_factor other than 1 is not supported", config.origin());
  }
  if (!(rope.theta > 0)) fail("{}: rope_theta is {}, wanted a positive number", config.origin(), rope.theta);
  return rope;
}

double yarn_magnitude(double scale, double multiplier) {
  return scale <= 1 ? 1.0 : 0.1 * multiplier * std::log(scale) + 1.0;
}

double yarn_logit_mscale(const RopeConfig& config) {
  const double all = config.mscale_all_dim.value_or(0);
  return config.scaling == RopeScaling::yarn && all != 0 ? yarn_magnitude(config.factor, all) : 1.0;
}

}  // namespace hexad::model
