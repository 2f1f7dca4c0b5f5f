// Files in numbered parts: "data/train-00001-of-00004.jsonl".
#pragma once
#include <set>
#include <string>

namespace hexad::hub {

// The first part that is not among `names`, of the files that have some part there; empty where all are whole. Counted
// is from 0, or from 1 where the last number is there and 0 is not.
std::string missing_part(const std::set<std::string>& names);

}  // namespace hexad::hub
