#include "core/config/rules_fp8.hpp"

#include <fmt/format.h>

namespace hexad::config {

void check_fp8_rules(RuleContext& c, const std::string& section) {
  const std::string at = section + ".fp8_cfg.";
  const bool parameters = c.flag(at + "fp8_param");
  if (!c.flag(at + "enabled")) {
    if (parameters)
      c.error(at + "fp8_param",
              "needs fp8_cfg.enabled: true, for parameters are FP8 only where training is; nearest: false");
    return;
  }
  const std::string recipe = c.text(at + "fp8_recipe").value_or("tensorwise");
  if (recipe != "tensorwise" && recipe != "blockwise")
    c.error(at + "fp8_recipe",
            fmt::format("the recipe {} is not available in this version, wanted tensorwise or blockwise; nearest: {}",
                        recipe, recipe == "delayed" ? "tensorwise" : "blockwise"));
  if (parameters)
    c.error(at + "fp8_param", "parameters in FP8 are not available in this version, wanted false; nearest: false");
  if (c.flag(section + ".tp_comm_overlap"))
    c.error(section + ".tp_comm_overlap",
            "does not go with fp8_cfg.enabled: true in this version, for tokens that travel in runs have no common "
            "scale; nearest: false");
}

}  // namespace hexad::config
