#include "modeling/backend/settings/fp8_settings.hpp"

namespace hexad::modeling {

Fp8 read_fp8(const sdk::Config& config, const std::string& section, const char* recipe) {
  const std::string at = section + ".fp8_cfg.";
  if (!config.get((at + "enabled").c_str(), false)) return Fp8::off;
  const std::string format = config.get((at + "fp8").c_str(), "e4m3");
  if (format != "e4m3" && format != "hybrid")
    sdk::fail(HEXAD_INVALID_ARGUMENT, "policy.%sfp8 is '%s', wanted e4m3 or hybrid", at.c_str(), format.c_str());
  const std::string scaling = config.get((at + "fp8_recipe").c_str(), recipe);
  if (scaling != "tensorwise" && scaling != "blockwise")
    sdk::fail(HEXAD_UNIMPLEMENTED,
              "policy.%sfp8_recipe is '%s', which is not available: wanted tensorwise or blockwise", at.c_str(),
              scaling.c_str());
  if (config.get((at + "fp8_param").c_str(), false))
    sdk::fail(HEXAD_UNIMPLEMENTED, "policy.%sfp8_param is true: parameters in FP8 are not available, wanted false",
              at.c_str());
  if (scaling == "blockwise") return format == "hybrid" ? Fp8::blockwise_hybrid : Fp8::blockwise_e4m3;
  return format == "hybrid" ? Fp8::hybrid : Fp8::e4m3;
}

}  // namespace hexad::modeling
