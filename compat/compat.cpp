#include "compat/compat.hpp"

#include "compat/nemo_rl/eval_form.hpp"
#include "compat/roll/roll.hpp"
#include "compat/roll/schema.hpp"
#include "compat/trl/names.hpp"

namespace hexad::compat {

const config::Compat& all() {
  namespace roll = config::roll;
  static const config::Compat instance = {
      .forms = {{roll::is_roll, roll::is_roll_key, roll::roll_schema, roll::translate},
                {is_eval_form, is_eval_form_key, nullptr,
                 [](yaml::Node file) { return config::Translation{from_eval_form(std::move(file))}; }}},
      .names = trl_names(),
      .absent_parent = roll::deepspeed_preset,
      .look = roll::refuse_other_pipeline};
  return instance;
}

}  // namespace hexad::compat
