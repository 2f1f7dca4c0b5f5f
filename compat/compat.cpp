#include "compat/compat.hpp"

#include <vector>

#include "compat/nemo_rl/engines.hpp"
#include "compat/nemo_rl/eval_form.hpp"
#include "compat/openrlhf/names.hpp"
#include "compat/roll/roll.hpp"
#include "compat/roll/schema/schema.hpp"
#include "compat/trl/names.hpp"
#include "compat/verl/names.hpp"

namespace hexad::compat {
namespace {

// Where two systems have the same name, the first answers.
std::vector<config::OtherName> all_names() {
  std::vector<config::OtherName> names;
  for (const auto& table : {trl_names(), verl_names(), openrlhf_names()})
    names.insert(names.end(), table.begin(), table.end());
  return names;
}

}  // namespace

const config::Compat& all() {
  namespace roll = config::roll;
  static const std::vector<config::OtherName> names = all_names();
  static const config::Compat instance = {
      .forms = {{roll::is_roll, roll::is_roll_key, roll::roll_schema, roll::translate},
                {is_eval_form, is_eval_form_key, nullptr,
                 [](yaml::Node file) { return config::Translation{from_eval_form(std::move(file))}; }}},
      .names = names,
      .sections = nemo_rl_sections(),
      .engines = nemo_rl_engines(),
      .absent_parent = roll::deepspeed_preset,
      .look = roll::refuse_other_pipeline};
  return instance;
}

}  // namespace hexad::compat
