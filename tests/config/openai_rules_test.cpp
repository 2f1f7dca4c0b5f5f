// Rules about servers that keep their model: what their samples may be used for, and how they are named.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

namespace {

const std::string kAt = "/policy.generation.", kOwn = kAt + "openai_cfg.";

// Of a run that may train on their samples, with one key of it otherwise.
Overrides off_policy(const Overrides& more = {}) {
  Overrides all = {"/policy.generation.backend=openai",
                   "/cluster.gpus_per_node=1",
                   kOwn + "server_urls=['http://a:1']",
                   kOwn + "model=m",
                   kOwn + "logprobs=true",
                   "/loss_fn.use_importance_sampling_correction=true"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// For texts that are no files of layouts.
Overrides added(Overrides overrides) {
  for (std::string& text : overrides) text.replace(0, 1, "++");
  return overrides;
}

}  // namespace

TEST_CASE("training on samples of servers that take no weights wants the correction, and their log-probs") {
  check_rules(
      kDense,
      {{off_policy({"/loss_fn.use_importance_sampling_correction=false"}),
        "policy.generation.backend: got openai, whose servers take no weights: samples are never of the policy that is "
        "trained. Wanted loss_fn.use_importance_sampling_correction: true",
        off_policy()},
       {off_policy({kOwn + "logprobs=false"}),
        "policy.generation.openai_cfg.logprobs: got false, wanted true: training on samples of another policy needs "
        "the "
        "log-probs under which its server drew them",
        off_policy()},
       {off_policy({kAt + "temperature=0.7"}), "policy.generation.temperature: got temperature 0.7, top_p 1",
        off_policy()},
       {off_policy({kAt + "top_p=0.9"}), "wanted 1, 1 and no top_k with policy.generation.backend openai",
        off_policy()},
       {off_policy({kAt + "top_k=5"}), "wanted 1, 1 and no top_k", off_policy({kAt + "top_k=-1"})}});
}

TEST_CASE("a run on servers that take no weights says so in one line") {
  const auto told = [](const Overrides& overrides) {
    return has_notice(resolve_text(added(overrides)), "policy.generation.backend",
                      "no refit: servers of openai keep the model that they have");
  };
  CHECK(told(off_policy()));
  CHECK_FALSE(told({"/policy.generation.backend=native"}));
}

TEST_CASE("an evaluation by such servers needs neither the correction nor log-probs") {
  const std::string evaluation = "policy: {model_name: m}\ndata: {validation: {dataset_name: arithmetic}}\neval: {}\n";
  const Overrides by = {"++policy.generation.backend=openai", "++policy.generation.openai_cfg.server_urls=['http://a']",
                        "++policy.generation.openai_cfg.model=m", "++policy.generation.temperature=0.7",
                        "++cluster.gpus_per_node=1"};
  CHECK(resolve_error(by, evaluation) == "");
}

TEST_CASE("what servers that keep their model are refused for is refused before the run") {
  check_rules(
      kDense,
      {{off_policy({kOwn + "server_urls=[]"}),
        "policy.generation.openai_cfg.server_urls: is missing: wanted the URLs of servers to ask",
        off_policy({kOwn + "server_urls=[]", kOwn + "server_command=[a]"})},
       {off_policy({kOwn + "model=null"}), "policy.generation.openai_cfg.model: is missing: wanted the name",
        off_policy()},
       {off_policy({kOwn + "prompt=words"}), "policy.generation.openai_cfg.prompt: got 'words', wanted",
        off_policy({kOwn + "prompt=text"})},
       {off_policy({kAt + "refit_transport=disk"}),
        "policy.generation.refit_transport: got disk, and OpenAI-compatible servers take no weights", off_policy()},
       {off_policy({kAt + "port_range_low=6000"}), "port_range_low: got 6000, wanted at most port_range_high (4999)",
        off_policy({kAt + "port_range_low=4999"})},
       {off_policy({"/cluster.gpus_per_node=2"}),
        "openai_cfg.server_urls: got 1 servers for 2 ranks that generate, wanted at least one a rank", off_policy()},
       {off_policy({kOwn + "extra_body={temperature: 1}"}),
        "policy.generation.openai_cfg.extra_body: model, prompt, n, best_of, echo, stream, max_tokens, temperature and "
        "top_p are the bridge's to set",
        off_policy({kOwn + "extra_body={user: me}"})}});
  check_rules(kExperts,
              {{off_policy({"/policy.router_replay.enabled=true"}),
                "policy.generation.backend: got openai, which has no routed_experts",
                off_policy({"/policy.router_replay.enabled=true", "/policy.router_replay.source=logprobs"})}});
}
