#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {

void add_rewards(Schema& s) {
  s.section("rewards", "rewards.<domain>: who judges the samples of a domain", kMap | kNull);
  const std::string at = "rewards.*";
  s.section(at, "one of them", kMap | kNull);
  s.add(at + ".worker_cls", kText, "", "MathRuleRewardWorker, or the name of an environment");
  s.add(at + ".tag_included", kList | kNull, "[]", "")
      .elements(kText)
      .accepted("every row of the files trains, whatever its tag; ROLL leaves out rows of domains without a share");
  for (const char* filter : {"query_filter_config", "response_filter_config"}) {
    s.section(at + "." + filter, "a filter", kMap | kNull);
    s.add(at + "." + filter + ".type", kText, "no_filter", "")
        .unavailable("a filter of samples by reward", {"no_filter"});
    s.add(at + "." + filter + ".filter_args", kMap | kNull, "{}", "").open().dormant();
  }
  s.add(at + ".response_length_penalty_coef", kFloat, "0.0", "").unavailable("a penalty of length", {"0", "0.0"});
  s.add(at + ".format_pattern", kText | kNull, "null", "").unavailable("a pattern of answers", {"null"});
  s.add(at + ".reward_manager_config", kList | kNull, "[]", "").unavailable("ROLL's reward plugins", {"[]", "null"});
  for (const char* name :
       {"reward_type",      "code_url",      "use_local",      "judge_prompt",    "judge_model_type",
        "judge_model_name", "judge_api_url", "judge_api_key",  "model_args",      "data_args",
        "generating_args",  "strategy_args", "device_mapping", "world_size",      "num_gpus_per_worker",
        "infer_batch_size", "name",          "system_envs",    "backend_timeout", "max_concurrency"}) {
    s.add(at + "." + name, kAny, "", "").open();
  }
  s.add("reward_system_config", kMap | kNull, "", "").open().accepted("answers are decoded without special tokens");
}

}  // namespace hexad::config::roll
