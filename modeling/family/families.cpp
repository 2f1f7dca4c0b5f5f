#include "modeling/family/families.hpp"

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {
constexpr Presence kNever = Presence::never, kAlways = Presence::always, kConfigured = Presence::configured,
                   kOptOut = Presence::opt_out;
}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"llama", kConfigured, kConfigured, kConfigured, false, Window::none, 0, 0, 2048, 1, 2},
      {"mistral", kNever, kNever, kNever, false, Window::every_layer, 8, 0, 131072, 1, 2},
      {"qwen2", kAlways, kNever, kNever, false, Window::from_max_window_layers, 32, 0, 32768, {}, {}},
      {"qwen3", kConfigured, kConfigured, kNever, true, Window::from_max_window_layers, 32, 128, 32768, {}, {}},
      {"qwen2_moe", kOptOut, kNever, kNever, false, Window::alternate, 16, 0, 32768, {}, {}, &kQwen2Moe},
      {"qwen3_moe", kConfigured, kConfigured, kNever, true, Window::opt_in, 4, 0, 32768, {}, {}, &kQwen3Moe},
      {"mixtral", kNever, kNever, kNever, false, Window::if_set, 8, 0, 131072, 1, 2, &kMixtral, false, 1e6, 1e-5},
      {"deepseek_v3", kConfigured, kConfigured, kNever, false, Window::none, 0, 0, 4096, 0, 1, &kDeepseekV3, true},
  };
  return table;
}

const Family& family_of(const std::string& model_type, const std::string& origin) {
  std::string known;
  for (const Family& family : families()) {
    if (family.model_type == model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  fail("{}: model_type '{}' is not supported; known families: {}", origin, model_type, known);
}

}  // namespace hexad::modeling
