// Hydra's grammar of command-line overrides.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

struct Override {
  enum class Kind { change, add, force_add, remove };  // k=v, +k=v, ++k=v, ~k or ~k=v
  Kind kind = Kind::change;
  std::string key;            // dotted
  std::optional<Node> value;  // absent for ~k alone; its location names the override
  std::string text;           // as given, without secrets
};

// Throws Error(config) that shows the override and what is wrong with it. Values: words (see scalar.hpp), 'quoted' or
// "quoted" text, [lists], {maps}, int() float() str() bool() of those. Sweeps (a=1,2), packages (a@b) and Hydra's
// other functions are refused.
Override parse_override(std::string_view text);

}  // namespace hexad::yaml
