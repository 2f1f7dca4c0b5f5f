#include "lib/model/family/topk_options.hpp"

#include "lib/model/error.hpp"

namespace hexad::model {

void check_topk(const TopkOptions& o, int64_t num_experts) {
  if (o.topk < 1 || o.topk > num_experts) fail("router: topk is {}, wanted 1 ... {} (experts)", o.topk, num_experts);
  if (o.num_groups == 0 && o.group_topk == 0) return;
  if (o.num_groups < 1 || num_experts % o.num_groups != 0)
    fail("router: {} experts do not form {} equal groups", num_experts, o.num_groups);
  if (o.group_topk < 1 || o.group_topk > o.num_groups)
    fail("router: group_topk is {}, wanted 1 ... {} (groups)", o.group_topk, o.num_groups);
  const int64_t reachable = o.group_topk * (num_experts / o.num_groups);
  if (o.topk > reachable)
    fail("router: topk is {}, but {} groups of {} experts have {}", o.topk, o.group_topk, num_experts / o.num_groups,
         reachable);
}

}  // namespace hexad::model
