// The grammar of `${...}` in text (OmegaConf's): what a text with interpolations consists of.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Part of a parsed text or of a resolver's argument.
struct Expression {
  enum class Kind {
    literal,    // `value`
    reference,  // ${a.b}: `up` leading dots, then `parts`, each of which comes to a key
    call,       // ${name:arg,arg}: `parts[0]` comes to the name, the rest are the arguments
    text,       // the texts of `parts`, joined
    list,       // [a, b]
    map,        // {k: v}: `keys` and `parts`
  };
  Kind kind = Kind::literal;
  Node value;
  int up = 0;
  std::vector<Expression> parts;
  std::vector<std::string> keys;
};

// True if text must go through parse_interpolation: it holds "${".
bool has_interpolation(std::string_view text);

// Parses a text value. One interpolation alone keeps the type of what it refers to; anything else is text, in which
// `\${` stands for "${". Throws Error(config) that shows the text and where it goes wrong.
Expression parse_interpolation(std::string_view text);

// Parses one element as in a resolver's argument ("5" is an integer, "[a, 1]" a list): for oc.decode.
Expression parse_element(std::string_view text);

}  // namespace hexad::yaml
