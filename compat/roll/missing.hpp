// What a file asks for and this program cannot do, and how all that is said of a file is put into few lines.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config::roll {

struct Missing {
  yaml::Location location;
  std::string key;         // that asks for it
  std::string capability;  // "LoRA"
  std::string advice;      // behind it in the line, e.g. "; nearest: ..."; may be empty
};

// Capabilities that several keys ask for.
inline constexpr const char* kCritic = "a critic (adv_estimator: gae)";
inline constexpr const char* kMedia = "a model that sees or hears (images, video or audio in prompts)";
inline constexpr const char* kTopr = "the TOPR loss";
inline constexpr const char* kAdapters = "LoRA";

// The capability that an error of check_keys is about; nothing where the error is a mistake of the file's. `key` is the
// key's entry in the schema, and `value` what the file holds; null where there is none.
std::optional<Missing> as_missing(const Problem& problem, const Key* key, const yaml::Node* value);

// All that is said of `file`: an error for each missing capability, which names every key that belongs to it; the other
// errors as they are; a notice for each reason, with all keys that it holds for.
std::vector<Problem> in_few_lines(std::vector<Problem> problems, std::vector<Missing> missing, const yaml::Node& file);

}  // namespace hexad::config::roll
