#include "plugins/native/parallel/make_replica.hpp"

#include <fmt/ranges.h>

#include "modeling/backend/host_groups.hpp"
#include "modeling/error.hpp"

namespace hexad::native {

Replica make_replica(const sdk::Call& call, int64_t ranks) {
  if (ranks == 1) return {};
  const int64_t world = modeling::world_size(call);
  if (world % ranks != 0) {
    modeling::fail("native_cfg.tensor_parallel_size: got {}, wanted a divisor of the {} ranks of the run", ranks,
                   world);
  }
  const modeling::HostGroups groups(call, "generator");
  std::vector<model::RankList> lists;
  for (int64_t first = 0; first < world; first += ranks) {
    auto& list = lists.emplace_back();
    for (int64_t rank = first; rank < first + ranks; ++rank) list.push_back(static_cast<int32_t>(rank));
  }
  const modeling::Group group = groups.make(lists, "tp"), aside = groups.make(lists, "tp.aside");
  return {group, aside,
          fmt::format("group 'tp{}' of ranks [{}]", groups.suffix(),
                      fmt::join(lists[static_cast<size_t>(groups.rank() / ranks)], ", "))};
}

}  // namespace hexad::native
