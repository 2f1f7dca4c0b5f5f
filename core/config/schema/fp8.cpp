#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_fp8(Schema& s, const std::string& section, const char* recipe, bool filled) {
  const std::string at = section + ".fp8_cfg";
  s.section(
      at,
      "FP8 training: products of attention's projections and of dense MLPs, and with tensorwise of routed experts, in "
      "log-prob passes too; embedding, head, norms, routers and shared experts keep policy.precision, and so do "
      "weights whose sizes are no multiples of 16. Experts have e4m3 everywhere, a scale for each token and one for "
      "each expert's weight, and gradients of their weights in policy.precision",
      kMap | kNull);
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    Schema::Entry entry = s.add(at + "." + name, kinds, value, meaning);
    return filled ? entry : entry.not_filled();
  };
  key("enabled", kBool, "false", "train in FP8");
  key("fp8", kText, "e4m3", "format; hybrid: e5m2 for gradients of outputs").one_of({"e4m3", "hybrid"});
  key("fp8_recipe", kText, recipe,
      "how values are scaled; available: tensorwise, by the largest of the tensor at hand, and blockwise, activations "
      "and gradients by strips of 128 channels of a token (of 128 tokens of a channel for weight gradients) and "
      "weights by blocks of 128 x 128, with fp32 scales; on a GPU blockwise needs Hopper")
      .one_of({"tensorwise", "blockwise", "mxfp8", "delayed"});
  key("fp8_param", kBool, "false", "parameters in FP8 too; not available");
}

}  // namespace hexad::config
