#include "compat/trl/names.hpp"

#include "core/config/meant_key.hpp"
#include "tests/compat/support.hpp"

using namespace compat_test;

TEST_CASE("what TRL calls a setting is answered with its key here, and every such key is one") {
  for (const hexad::config::OtherName& trl : hexad::compat::trl_names()) {
    INFO(trl.name);
    if (trl.key.empty()) continue;  // tests/compat/names_test.cpp
    CHECK(hexad::config::takes(config_test::every_schema(), std::string(trl.key)));
    if (config_test::every_schema().find(trl.name)) continue;
    check_says(resolve_error({std::string(trl.name) + "=1"}), std::string(trl.key));
  }
  CHECK(resolve_error({"kl_coef=1"}).find("TRL") == std::string::npos);
  check_says(resolve_error({"num_generations=4"}), "TRL's num_generations is grpo.num_generations_per_prompt");
  CHECK(resolve_error({"learning_rate=1e-3"}) ==
        "override 'learning_rate=1e-3': there is no key learning_rate; TRL's learning_rate is "
        "policy.optimizer.kwargs.lr");
  CHECK(resolve_error({"loss_fn.beta=0"}) ==
        "override 'loss_fn.beta=0': there is no key loss_fn.beta; TRL's beta is loss_fn.reference_policy_kl_penalty");
  check_says(resolve_error({"+learning_rate=1e-3"}),
             "learning_rate: unknown key; TRL's learning_rate is policy.optimizer.kwargs.lr");
  check_says(resolve_error({"fp16=true"}), "TRL's fp16 is policy.precision (float32 or bfloat16)");
  check_says(resolve_error({"top_p=1"}), "there is no key top_p; did you mean policy.generation.top_p?");
  const std::string dpo = "policy: {model_name: m}\ndata: {train: {dataset_name: d}}\ndpo: {max_num_steps: 3}\n";
  check_says(resolve_error({"beta=0.1"}, dpo), "TRL's beta is dpo.reference_policy_kl_penalty");
  check_says(resolve_error({"max_steps=1"}, dpo), "TRL's max_steps is dpo.max_num_steps");
}
