// Generation while training goes on.
#include <cmath>

#include "compat/roll/pass.hpp"

namespace hexad::config::roll {

void translate_async(Pass& p) {
  const char* const key = "async_generation_ratio";
  const double ratio = p.file.number(key).value_or(0);
  if (!(ratio > 0)) return;
  if (ratio < 1) return p.file.error(key, fmt::format("got {}, wanted 0 or at least 1, as ROLL does", ratio));
  const yaml::Node* shared = p.out.find("policy.generation.colocated.enabled");
  if (!shared || !shared->is_bool() || shared->as_bool()) {
    return p.file.missing(key, "asynchronous generation on devices that train",
                          "; nearest: an actor_infer.device_mapping that shares no device with actor_train's");
  }
  const std::string at = "grpo.async_grpo.";
  p.set(at + "enabled", true, key);
  // ROLL's buffer drops samples that were begun more steps ago than this.
  p.set(at + "max_trajectory_age_steps", static_cast<int64_t>(std::ceil(std::min(ratio, 1e6))), key);
  // ROLL stops its requests for new weights and sends them again with what they have drawn so far.
  p.set(at + "in_flight_weight_updates", true, key);
  p.set(at + "recompute_kv_cache_after_weight_updates", true, key);
  if (std::trunc(ratio) != ratio) {
    p.file.notice(key, fmt::format("samples may be {} steps old; ROLL takes only a part of a step's from the oldest",
                                   std::ceil(ratio)));
  }
  const yaml::Node* corrected = p.out.find("loss_fn.use_importance_sampling_correction");
  if (corrected && corrected->is_bool() && corrected->as_bool()) return;
  p.set("loss_fn.use_importance_sampling_correction", true, key);
  p.file.notice(key,
                "tokens are weighted by exp(trainer's - generator's log-prob), as asynchronous runs need it here; "
                "ROLL does so where train_infer_correction.is_weight asks for it");
}

}  // namespace hexad::config::roll
