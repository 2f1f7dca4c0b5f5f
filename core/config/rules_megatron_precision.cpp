// Types of numbers.
#include "core/config/rules_fp8.hpp"
#include "core/config/rules_megatron.hpp"

namespace hexad::config {

void check_megatron_precision(const MegatronRules& r) {
  const std::string precision = r.c.text("policy.precision").value_or("bfloat16");
  const auto asked = [&](const char* key) { return r.given(key) && r.flag(key); };
  if (asked("optimizer.bf16") && asked("optimizer.fp16")) {
    return r.error("optimizer.fp16", "optimizer.bf16 is true as well, wanted one of them; nearest: false");
  }
  for (const auto& [key, type] : {std::pair{"optimizer.bf16", "bfloat16"}, std::pair{"optimizer.fp16", "float16"}}) {
    if (asked(key) && precision != type)
      r.error(key, fmt::format("got true, but policy.precision is {}; nearest: false", precision));
    if (r.given(key) && !r.flag(key) && precision == type)
      r.notice(key, fmt::format("has no effect: the optimizer follows policy.precision, which is {}", precision));
  }
  check_fp8_rules(r.c, "policy.megatron_cfg");
}

}  // namespace hexad::config
