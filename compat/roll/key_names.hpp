// Many keys in few words.
#pragma once
#include <string>
#include <vector>

namespace hexad::config::roll {

// The keys as one text, what they share written once: "a.{b, c}, {d, e}.f". In the order in which they come.
std::string key_names(const std::vector<std::string>& keys);

}  // namespace hexad::config::roll
