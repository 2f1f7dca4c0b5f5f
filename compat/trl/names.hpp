// What TRL calls a setting, and which key it is here: for those who type the former.
#pragma once
#include <span>

#include "core/config/schema/schema.hpp"

namespace hexad::compat {

// Of GRPOConfig and transformers' TrainingArguments. docs/from_trl.md has them in prose.
std::span<const config::OtherName> trl_names();

}  // namespace hexad::compat
