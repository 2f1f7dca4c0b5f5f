// "Did you mean ...?" for a key of a configuration.
#pragma once
#include <string>

#include "lib/yaml/node.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// True if the schema has the key, or its section takes any.
bool takes(const Schema& schema, const std::string& key);

// What is to be said of a key that is neither in the tree nor in the schema (null: there is none).
struct MeantKey {
  // The key up to the first part that is nowhere: "polcy" of "polcy.precision"; whole where `hint` is about the whole.
  std::string missing;
  // "did you mean policy.precision?" or "TRL's beta is loss_fn.reference_policy_kl_penalty"; "": nothing is near.
  std::string hint;
  std::string list;  // the list that stands where the key wants a mapping; "": none does
};

// In this order: keys beside it that begin with the word, other systems' names, keys of the schema that end as the key
// does, a section misspelt, keys elsewhere of that name or beginning with it, and names beside it by edit distance.
MeantKey meant_key(const std::string& key, const yaml::Node& root, const Schema* schema);

}  // namespace hexad::config
