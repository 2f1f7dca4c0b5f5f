// A manifest's facts against what the backend says of itself once it is there.
#pragma once
#include <vector>

#include "core/cluster/protocol/protocol.hpp"
#include "core/config/typed/run_facts.hpp"

namespace hexad::cluster {

// `started`: the workers' replies to `start`, in rank order. Batches were cut, and the configuration checked, by the
// facts: the first that describe() contradicts is an Error(plugin), which names plugin, rank, fact, and both values.
void check_facts(const std::vector<protocol::Start::Reply>& started, const RankRange& trainers,
                 const config::RunFacts& facts);

}  // namespace hexad::cluster
