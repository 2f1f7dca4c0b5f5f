// What verl and OpenRLHF call a setting: every key that a table names is one here, and every name has an answer.
#include <set>

#include "compat/openrlhf/names.hpp"
#include "compat/trl/names.hpp"
#include "compat/verl/names.hpp"
#include "core/config/meant_key.hpp"
#include "tests/compat/support.hpp"

using namespace compat_test;
using hexad::config::OtherName;

namespace {

std::vector<OtherName> every_name() {
  const std::span<const OtherName> names = hexad::compat::all().names;
  return {names.begin(), names.end()};
}

}  // namespace

TEST_CASE("a name of another system has a key of ours or words, and stands once in its table") {
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const OtherName& name : every_name()) {
    INFO(name.system << " " << name.name);
    CHECK(known.emplace(name.system, name.name).second);
    CHECK((!name.key.empty() || !name.note.empty()));
    if (!name.key.empty()) CHECK(hexad::config::takes(config_test::every_schema(), std::string(name.key)));
  }
  CHECK(known.size() > 450);
}

TEST_CASE("an override by a name of verl's or OpenRLHF's is answered with the key, or with what there is instead") {
  for (const OtherName& name : every_name()) {
    if (name.name.ends_with('.') || config_test::every_schema().find(name.name)) continue;
    INFO(name.system << " " << name.name);
    const std::string said = resolve_error({std::string(name.name) + "=1"});
    // Of a name that two systems have, the first answers.
    CHECK_MESSAGE((said.find(name.key) != said.npos || said.find("TRL's") != said.npos), said);
    if (name.key.empty()) CHECK_MESSAGE((said.find(name.note) != said.npos || said.find("TRL's") != said.npos), said);
  }
}

TEST_CASE("names of verl are whole paths; one without a row of its own is answered by its section's") {
  CHECK(resolve_error({"actor_rollout_ref.rollout.n=8"}) ==
        "override 'actor_rollout_ref.rollout.n=8': there is no key actor_rollout_ref.rollout.n; verl's "
        "actor_rollout_ref.rollout.n is grpo.num_generations_per_prompt");
  CHECK(resolve_error({"trainer.frobnicate=8"}) ==
        "override 'trainer.frobnicate=8': there is no key trainer.frobnicate; verl's trainer.frobnicate: no such "
        "setting; the keys of `grpo`, `checkpointing` and `logger` are all there are");
  check_says(resolve_error({"data.train_batch_size=8"}), "verl's data.train_batch_size is grpo.num_prompts_per_step");
  check_says(resolve_error({"critic.optim.lr=1"}), "verl's critic.optim.lr: a critic is not available");
  CHECK(resolve_error({"n=8"}).find("verl") == std::string::npos);
}

TEST_CASE("each key of a section of verl's in a file has a line of its own") {
  const std::string file = kValid +
                           "actor_rollout_ref:\n  actor: {use_kl_loss: true, zork: {a: 1}}\n  model: {path: x}\n"
                           "algorithm: {gamma: 0.9}\ntrainer: {}\n";
  const std::string said = resolve_error({}, file);
  check_says(said,
             "a.yaml:5:11: error: actor_rollout_ref.actor.use_kl_loss: unknown key; verl's "
             "actor_rollout_ref.actor.use_kl_loss is loss_fn.reference_policy_kl_penalty (0: none)");
  check_says(said,
             "error: actor_rollout_ref.actor.zork.a: unknown key; verl's actor_rollout_ref.actor.zork.a: no such "
             "setting; the keys of `policy` and `loss_fn` are all there are");
  check_says(said,
             "verl's actor_rollout_ref.model.path is policy.model_name (`hexad config from-verl FILE` translates "
             "the file)");
  check_says(said, "error: algorithm.gamma: unknown key; verl's algorithm.gamma: tokens are not discounted");
  check_says(said, "error: trainer: unknown key");
  CHECK(said.find("error: actor_rollout_ref: ") == std::string::npos);
  check_says(resolve_error({}, kValid + "actor_rollout: {a: 1}\n"), "error: actor_rollout: unknown key");
}

TEST_CASE("names of TRL and OpenRLHF that have no counterpart say so") {
  CHECK(resolve_error({"+use_peft=true"}) ==
        "override '+use_peft=true': error: use_peft: unknown key; TRL's use_peft: low-rank adapters are not available; "
        "all weights are trained");
  CHECK(resolve_error({"lora_r=8"}) ==
        "override 'lora_r=8': there is no key lora_r; TRL's lora_r: low-rank adapters are not available; all weights "
        "are trained");
  check_says(resolve_error({"reward_funcs=[a]"}), "TRL's reward_funcs is env (env.NAME.python: FILE.py");
  check_says(resolve_error({"micro_train_batch_size=1"}),
             "OpenRLHF's micro_train_batch_size is policy.train_micro_batch_size");
  check_says(resolve_error({"algo.kl.init_coef=1"}),
             "OpenRLHF's algo.kl.init_coef is loss_fn.reference_policy_kl_penalty");
  check_says(resolve_error({"critic.num_nodes=1"}), "OpenRLHF's critic.num_nodes: a critic is not available");
}

TEST_CASE("an element type by a name of another system is answered with ours") {
  const auto meant = [](const std::string& got, const std::string& ours) {
    check_says(
        resolve_error({"policy.precision=" + got}),
        "policy.precision: got '" + got + "', wanted one of bfloat16, float16, float32; did you mean " + ours + "?");
  };
  meant("bf16", "bfloat16");
  meant("fp16", "float16");
  meant("half", "float16");
  meant("fp32", "float32");
  meant("float", "float32");
  meant("torch.bfloat16", "bfloat16");
  CHECK(resolve_error({"policy.precision=int8"}).find("did you mean") == std::string::npos);
}
