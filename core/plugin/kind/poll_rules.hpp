// The rules of the ABI that what a generator's poll gives can be held to by itself, whatever was asked for.
#pragma once
#include <optional>
#include <span>
#include <string>

#include <hexad/abi.h>

namespace hexad::plugin {

struct BrokenRule {
  const char* rule;  // "G3"
  std::string what;
};

// `events` is the room that poll was given, `count` what it says that it has put there. Partial completions and the
// last ones are looked at, those that tell an error are not.
std::optional<BrokenRule> broken_rule_of_poll(std::span<const hexad_completion* const> events, int64_t count);

}  // namespace hexad::plugin
