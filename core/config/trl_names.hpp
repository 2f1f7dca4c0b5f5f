// What TRL calls a setting, and which key it is here: for those who type the former.
#pragma once
#include <span>
#include <string_view>

namespace hexad::config {

struct TrlName {
  std::string_view name;       // of GRPOConfig and transformers' TrainingArguments
  std::string_view key;        // of the schema; of GRPO where each algorithm has one of its own
  std::string_view note = {};  // where the value is another one
};

// docs/from_trl.md has them in prose.
std::span<const TrlName> trl_names();
// Null for a name that TRL does not have, or that is no setting here.
const TrlName* trl_name(std::string_view name);

}  // namespace hexad::config
