#include "core/config/reference.hpp"

#include "core/base/joined.hpp"
#include "core/config/check_value.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {
namespace {

constexpr const char* kIntroduction = R"(# Configuration

All keys of a Hexad config. They are NeMo-RL's, with a few of Hexad's own. This page is generated from the schema in
`core/config/schema/`; `tools/update_config_docs.sh` writes it anew.

## Files and overrides

- YAML 1.1 as OmegaConf reads it: `1e-8` is a number, `yes` and `on` are booleans, `None` is text, `012` is 10; a key
  written twice is an error.
- `defaults: base.yaml` (or a list) inherits from other files, relative to the file that names them; later ones win, the
  file itself wins over all. Mappings merge, everything else replaces. `_override_: true` in a top-level section drops
  what the parents say there. `???` marks a value that a child or the command line must give.
- `${a.b}` refers to another key, `${.b}` to one beside, `${..b}` to one above. There are `${add:x,y}`, `${mul:x,y}`,
  `${div:x,y}`, `${max:x,y}`, `${oc.env:NAME,default}`, `${oc.select:key,default}`, `${oc.decode:text}`.
- On the command line: `a.b=1` sets a key, `+a.b=1` adds one, `++a.b=1` does either, `~a.b` removes one. Values are
  numbers, `true`, `null`, text, `[lists]`, `{maps: 1}`; text with other characters is quoted: `a.b='x, y'`.
- `hexad config check CONFIG` names every mistake with file, line and column; `hexad config show CONFIG` prints what
  a config comes to, defaults included.

## NeMo-RL's own configs

Those of NeMo-RL 0.3.0 are valid as they are. Of the newest the file `tests/config/nemo_recipes.txt` says which are valid, and
which keys of the others name what cannot run here; `tools/check_nemo_recipes.sh CHECKOUT/examples/configs` compares it with a
checkout. Engines that do not run here (`policy.generation.backend: sglang`, `trtllm`, `megatron`, `dynamo`) are read as
`native`, and a line says so. `env.math.verifier_type: multichoice` is `english_multichoice`, and `multilingual_multichoice`
where `data.dataset_name` is MMLU in another language (`mmlu_ZH-CN`).

## ROLL's form

A file whose top level has ROLL's roles (`actor_train`, `actor_infer`, ...) and none of NeMo-RL's blocks is translated to the
keys below: `hexad config show` prints what came out, `hexad train` runs it. Every key of ROLL's has its effect, or a line
that says what becomes of it; a name that ROLL lacks is an error, unless a `${name}` of the file refers to it. Messages name
ROLL's keys and the line of the file.

- The top-level block `hexad` holds NeMo-RL's keys, which win over the translation: `hexad: {policy: {random_init_seed: 7}}`.
  Overrides on the command line take ROLL's keys and NeMo-RL's.
- `actor_train.strategy_args`: `megatron_train` is `policy.megatron_cfg`; `fsdp2_train` and `deepspeed_train` are
  `policy.dtensor_cfg` (ZeRO stage 3: `reshard_after_forward`; offload to the CPU: `cpu_offload`). ROLL's DeepSpeed presets
  (`../config/deepspeed_zero3@_here_`) are known by name.
- Ranks are those of `actor_train.device_mapping`; all of them generate. `vllm` and `sglang` are the native generator; another
  `strategy_name` of `actor_infer` is a generator plugin. The reference policy is `pretrain`, in the layout of `actor_train`.
- `rollout_batch_size` are prompts; `per_device_train_batch_size` x `gradient_accumulation_steps` x data-parallel ranks is
  `policy.train_global_batch_size`. Steps of a learning-rate schedule are rollouts.
- `adv_estimator`: `grpo`, and `reinforce` with `whiten_advantages` or with normalisation by the group. Absent keys have
  ROLL's defaults (`top_p: 0.7`, `top_k: 50`, `loss_agg_mode: seq-mean-token-mean`, ...).
- Rows are read from the columns `prompt` and `ground_truth` (`data_args.prompt`, `data_args.response`); `data_args` also
  takes the keys of `data.train`, e.g. `dataset_name: puzzle`. `rewards.<domain>.worker_cls` is `MathRuleRewardWorker` or
  the name of an environment; all domains in use have one.
- Refused: critics (`gae`), LoRA, asynchronous generation, generation on other devices, dynamic sampling and filters, LLM
  judges and code sandboxes, entropy and positive-sample losses, agentic, distillation and supervised pipelines.

## How to read the tables

A key without a default has none. `*`: any name. What becomes of a key:

- Where nothing is said, it has its effect.
- *Accepted:* it may stay in a config, and means here what is said.
- *Not available:* only the values that leave the feature off are accepted; others are refused before anything starts.
- *With that feature:* a detail of a feature that is not available; it may stay in a config.
)";

std::string escaped(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

std::string type_text(const Key& key) {
  if (key.kinds == kAny) return "any";
  static const std::pair<Kinds, const char*> names[] = {{kBool, "bool"}, {kInt, "int"},   {kFloat, "float"},
                                                        {kText, "str"},  {kList, "list"}, {kMap, "map"},
                                                        {kNull, "null"}};
  std::string result;
  for (const auto& [kind, name] : names) {
    if (!(key.kinds & kind)) continue;
    result += (result.empty() ? "" : " or ") + std::string(name);
    if (kind == kList && key.element_kinds != kAny) {
      for (const auto& [element, element_name] : names) {
        if (key.element_kinds & element) result += fmt::format(" of {}", element_name);
      }
    }
  }
  return result;
}

std::string status_text(const Key& key) {
  switch (key.status) {
    case Status::effective: return "";
    case Status::accepted: return key.note.empty() ? "" : fmt::format(" *Accepted:* {}.", key.note);
    case Status::dormant: return " *With that feature.*";
    case Status::unavailable:
      return key.off.empty() ? " *Not available.*"
                             : fmt::format(" *Not available:* only `{}`.", joined(key.off, "`, `"));
  }
  return "";
}

std::string description(const Key& key) {
  std::string text = key.meaning;
  const std::string range = range_text(key);
  if (!range.empty()) text += (text.empty() ? "" : "; ") + range;
  if (!key.not_built.empty()) text += fmt::format("; not available: {}", joined(key.not_built));
  if (!key.synonyms.empty()) text += fmt::format("; read as {}: {}", key.synonym_of, joined(key.synonyms));
  if (!text.empty()) text += ".";
  text += status_text(key);
  return text.starts_with(' ') ? text.substr(1) : text;
}

bool is_section(const Key& key) { return (key.kinds & kMap) && !key.open && !schema().children(key.path).empty(); }

void write_section(const Key& section, std::string& out) {
  out += fmt::format("\n## {}\n\n{}.{}\n", section.path, section.meaning, status_text(section));
  std::string rows;
  for (const std::string& path : schema().children(section.path)) {
    const Key& key = *schema().find(path);
    if (is_section(key) && !(key.kinds & kList)) continue;
    rows += fmt::format("| `{}` | {} | {} | {} |\n", key.path.substr(key.path.rfind('.') + 1), type_text(key),
                        key.default_yaml.empty() ? "" : "`" + key.default_yaml + "`", escaped(description(key)));
  }
  if (section.path == "env") rows += "| `*` | map | | arguments of the environment of this name: docs/rewards.md. |\n";
  if (!rows.empty()) out += "\n| key | type | default | meaning |\n|---|---|---|---|\n" + rows;
}

}  // namespace

std::string reference_markdown() {
  std::string out = kIntroduction;
  std::string alone;
  for (const Key& key : schema().keys()) {
    if (is_section(key)) {
      write_section(key, out);
    } else if (key.path.find('.') == std::string::npos) {
      alone += fmt::format("| `{}` | {} | {} |\n", key.path, type_text(key), escaped(description(key)));
    }
  }
  out += "\n## Other top-level blocks\n\nKeys that begin with `_` are free: they are there to be referred to.\n\n";
  out += "| key | type | meaning |\n|---|---|---|\n" + alone;
  return out;
}

}  // namespace hexad::config
