// Micro-batches under the interleaved schedule, rules 17 and 18.
#include "core/config/rules_megatron.hpp"

namespace hexad::config {
namespace {

const char* const kGroup = "microbatch_group_size_per_vp_stage";

bool fits(int64_t group, int64_t stages, int64_t micro_batches) {
  const int64_t rest = micro_batches % group;
  return group >= stages && group <= micro_batches && (rest == 0 || rest >= stages);
}

}  // namespace

void check_megatron_schedule(const MegatronRules& r) {
  const std::optional<int64_t> given = r.integer(kGroup);
  if (!r.interleaved() || r.pp == 1) {
    if (given) r.notice(kGroup, "has no effect: the schedule is not interleaved");
    return;
  }
  const int64_t group = std::max<int64_t>(given.value_or(r.pp), 1);
  const std::optional<int64_t> micro_batches = r.micro_batches();
  if (!micro_batches) {
    if (group < r.pp) {
      r.error(kGroup,
              fmt::format("got {}, wanted at least pipeline_model_parallel_size {}; nearest: {}", group, r.pp, r.pp));
    }
    return;
  }
  if (*micro_batches < r.pp) {
    return r.error("pipeline_model_parallel_size",
                   fmt::format("the interleaved schedule needs at least {} micro-batches a step (one for each stage), "
                               "got {} (policy.train_global_batch_size / (policy.train_micro_batch_size x {} "
                               "data-parallel ranks)); nearest: {} stages",
                               r.pp, *micro_batches, r.dp(), *micro_batches));
  }
  const auto valid = [&](int64_t v) { return fits(v, r.pp, *micro_batches); };
  if (valid(group)) return;
  if (group < r.pp || group > *micro_batches) {
    return r.error(kGroup, fmt::format("got {}, wanted pipeline_model_parallel_size {} to {}, the micro-batches of a "
                                       "step{}",
                                       group, r.pp, *micro_batches, nearest_valid(group, *micro_batches, valid)));
  }
  r.error(
      kGroup,
      fmt::format("{} micro-batches in groups of {} leave {}, wanted 0 or at least the {} stages, for fewer "
                  "leave a bubble{}",
                  *micro_batches, group, *micro_batches % group, r.pp, nearest_valid(group, *micro_batches, valid)));
}

}  // namespace hexad::config
