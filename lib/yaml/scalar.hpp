// What unquoted text means: a scalar of YAML, and a word of the grammars that OmegaConf and Hydra share (a value on a
// command line, or in `${f:...}`).
#pragma once
#include <string>
#include <string_view>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// The value of a plain scalar under YAML 1.1 as OmegaConf reads it: 012 is 10, 12:30:45 is 45045, yes/no/on/off are
// booleans, 1e-8 is a float, dates and 0o17 are text. Throws Error(config) (without a place) for an integer that
// does not fit 64 bits and for the reserved words `=` and `<<`.
Node::Value plain_scalar(std::string_view text);

// The same for an explicit tag: !!str, !!int, !!float, !!bool, !!null. Throws for a text the type cannot hold.
Node::Value tagged_scalar(std::string_view tag, std::string_view text);

// 12 and 1_000 are integers, 1e-5 .5 5. inf nan floats, true/FALSE booleans, null/NULL null, all else (007, yes, None)
// text. Throws Error(config) for an integer that does not fit 64 bits.
Node::Value word_value(std::string_view word);

// Letters, digits and _ / - \ + . $ % * @ ? |: what may stand in a word beside escapes.
bool is_word_char(char c);

// True if a backslash before `c` is dropped: \ ( ) [ ] { } : = , space, tab.
bool is_escapable(char c);

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace hexad::yaml
