// Words that OmegaConf's and Hydra's grammars share: what an unquoted value on a command line or in `${f:...}` means.
#pragma once
#include <string>
#include <string_view>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// 12 and 1_000 are integers, 1e-5 .5 5. inf nan floats, true/FALSE booleans, null/NULL null, all else (007, yes, None)
// text. Throws Error(config) for an integer that does not fit 64 bits.
Node::Value word_value(std::string_view word);

// Letters, digits and _ / - \ + . $ % * @ ? |: what may stand in a word beside escapes.
bool is_word_char(char c);

// True if a backslash before `c` is dropped: \ ( ) [ ] { } : = , space, tab.
bool is_escapable(char c);

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace hexad::yaml
