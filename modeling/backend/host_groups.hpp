// The host's process groups as this library's, and more of them for backends with several axes.
#pragma once
#include <string>
#include <vector>

#include <hexad/services.hpp>

#include "lib/model/process_groups.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

// Of the host's world; 1 when it has no communicator.
int64_t world_size(const sdk::Call& call);

class HostGroups {
 public:
  // Collective over the world: every rank makes the same ones in the same order. `owner`: part of the groups' names.
  explicit HostGroups(const sdk::Call& call, const std::string& owner = "backend");

  const Group& world() const { return world_; }
  int64_t rank() const { return world_.rank(); }         // in the world
  const std::string& suffix() const { return suffix_; }  // of the groups' names: ".backend0"

  // Makes all of `lists` and returns the one that holds this rank; one rank when none does. Collective over the world.
  Group make(const std::vector<model::RankList>& lists, const std::string& name) const;

 private:
  Group native(hexad_comm* comm) const;

  const sdk::Call& call_;
  Group world_;
  std::string suffix_;  // a name is given once in the life of a process
};

// Runs of tensor-parallel ranks that hold the same key/value heads, out of the tensor-parallel groups.
std::vector<model::RankList> equal_head_groups(const std::vector<model::RankList>& tensor_groups, int64_t kv_heads);

}  // namespace hexad::modeling
