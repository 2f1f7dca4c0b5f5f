// Messages about overrides.
#include "core/config/meant_key.hpp"
#include "tests/config/support.hpp"

using namespace config_test;

namespace {

const std::string kText = "grpo: {num_prompts: 4, steps: 7}\nl: [1, 2]\nn: null\n";

std::string error_of(const std::string& override) { return load_error(kText, {override}); }

}  // namespace

TEST_CASE("an unknown key is refused with the nearest one") {
  CHECK(error_of("grpo.num_promts=5") ==
        "override 'grpo.num_promts=5': there is no key grpo.num_promts; did you mean grpo.num_prompts?");
  CHECK(error_of("gpro.steps=5") == "override 'gpro.steps=5': there is no key gpro; did you mean grpo?");
  CHECK(error_of("other=5") == "override 'other=5': there is no key other; write +other=... to add one");
  check_says(error_of("grpo={stepz: 5}"), "key grpo.stepz does not exist");
}

TEST_CASE("adding what is there, and deleting what is not, is refused") {
  CHECK(
      error_of("+grpo.steps=5") ==
      "override '+grpo.steps=5': grpo.steps exists; write grpo.steps=... to change it or ++grpo.steps=... for either");
  CHECK(error_of("~gone") == "override '~gone': cannot delete gone: it does not exist or is null");
  CHECK(error_of("~grpo.steps=8") == "override '~grpo.steps=8': cannot delete grpo.steps: it is int 7 and not int 8");
  CHECK(error_of("~l.0") == "override '~l.0': elements of a list cannot be deleted; set the whole list");
  CHECK(error_of("l={a: 1}") ==
        "override 'l={a: 1}': cannot merge a mapping with a list of 2; remove the key first (~l)");
}

TEST_CASE("of a long override the front is shown") {
  const std::string error = error_of("other=" + std::string(100'000, 'a'));
  CHECK_MESSAGE(error.size() < 1000, error.size());
  check_says(error, "there is no key other");
}

TEST_CASE("a malformed override is refused with what is wrong") {
  CHECK(error_of("grpo.steps") == "override 'grpo.steps': there is no '='; wanted grpo.steps=value");
  CHECK(error_of("5x=1") ==
        "override '5x=1': '5x' is not a key; wanted names joined by dots, as in grpo.num_prompts_per_step=8");
  CHECK(error_of("a@b=1") == "override 'a@b=1': config groups and packages (key@package) are not supported");
  CHECK(
      error_of("n=1,2") ==
      "override 'n=1,2': a sweep over several values is not supported; quote a text that holds a comma at character 2 "
      "of the value");
  CHECK(error_of("n=a#b") ==
        "override 'n=a#b': unexpected '#'; quote a text with special characters at character 2 of the value");
  CHECK(error_of("n=[1,2") == "override 'n=[1,2': wanted ',' or ']' at character 5 of the value");
  CHECK(error_of("n='abc") == "override 'n='abc': the quotation does not end at character 5 of the value");
  CHECK(error_of("n={1: a}") == "override 'n={1: a}': a key must be text, got int 1 at character 3 of the value");
  CHECK(error_of("n={a}") == "override 'n={a}': wanted ':' at character 3 of the value");
  check_says(error_of("n='${x'"), "malformed interpolation '${x'");
  check_says(error_of("n=" + std::string(5000, '[')), "nested too deep");
  check_says(error_of("n=99999999999999999999"), "integer 99999999999999999999 does not fit 64 bits");
}

TEST_CASE("casts take what they can") {
  const auto node =
      load_text(kText, {"n=int('12')", "grpo.steps=float(3)", "l=str([1,true])", "grpo.num_prompts=bool(TRUE)"});
  CHECK(node.as_int("n") == 12);
  CHECK(node.at("grpo.steps").is_double());
  CHECK(node.as_strings("l") == std::vector<std::string>{"1", "true"});
  CHECK(node.as_bool("grpo.num_prompts"));
  CHECK(load_text(kText, {"n=int(2.7)"}).as_int("n") == 2);
  CHECK(error_of("n=int(x)") == "override 'n=int(x)': int() cannot take text 'x'");
  CHECK(error_of("n=bool(x)") == "override 'n=bool(x)': bool() cannot take text 'x'");
  CHECK(error_of("n=float(null)") == "override 'n=float(null)': float() cannot take null");
  CHECK(error_of("n=int(1,2)") == "override 'n=int(1,2)': int() takes one value, got 2");
  check_says(error_of("n=choice(1,2)"), "unknown function 'choice'; there are int, float, str, bool");
}

TEST_CASE("a known key may be set though no file has it") {
  const auto resolved = resolve_text({"policy.generation.native_cfg.kv_block_size=32", "+policy.generation.top_k=5"});
  CHECK(resolved.root.as_int("policy.generation.native_cfg.kv_block_size") == 32);
  CHECK(resolved.root.as_int("policy.generation.top_k") == 5);
  CHECK(resolve_error({"grpo.val_perod=5"}) ==
        "override 'grpo.val_perod=5': there is no key grpo.val_perod; did you mean grpo.val_period?");
  CHECK(resolve_error({"policy.generation.temprature=1"}) ==
        "override 'policy.generation.temprature=1': there is no key policy.generation.temprature; did you mean "
        "policy.generation.temperature?");
}

TEST_CASE("a key is looked for in other sections, by its end, its name and its beginning") {
  const auto says = [](const std::string& override, const std::string& words) {
    check_says(resolve_error({override}), words);
  };
  says("lr=1", "there is no key lr; did you mean policy.optimizer.kwargs.lr?");
  says("grpo.num_generations=4", "there is no key grpo.num_generations; did you mean grpo.num_generations_per_prompt?");
  says("colocated.sleep_level=1",
       "no key colocated.sleep_level; did you mean policy.generation.colocated.sleep_level?");
  says("optimizer.kwargs.lr=1", "did you mean policy.optimizer.kwargs.lr?");
  says("model_name=x", "did you mean policy.model_name?");
  says("max_new=4", "did you mean policy.generation.max_new_tokens?");
  says("polcy.precision=float32", "there is no key polcy; did you mean policy?");
  says("policy.generation.top=1", "did you mean policy.generation.top_p or policy.generation.top_k?");
  // Other algorithms' blocks, and the section of a backend that does not train, are not meant.
  says("val_global_batch_size=3", "there is no key val_global_batch_size; `docs/config.md` lists all keys");
  says("~policy.dtensor_cfg", "does not exist");
}

TEST_CASE("only what the schema takes may be added, and `+` is named nowhere else") {
  CHECK(resolve_error({"zzz=5"}) == "override 'zzz=5': there is no key zzz; `docs/config.md` lists all keys");
  CHECK(resolve_error({"zz=5"}) == "override 'zz=5': there is no key zz; `docs/config.md` lists all keys");
}

TEST_CASE("a key below a list says that it is one") {
  const std::string lists = kValid +
                            "env: {e: {x: 1}}\nloss_fn: {plugin_config: {l: [], m: [1, 2]}}\n"
                            "_s: [{name: a}, {name: b}, {milestones: [3]}]\n";
  const auto says = [&](const std::string& override, const std::string& words) {
    check_says(resolve_error({override}, lists), words);
  };
  says("_s.name=cosine", "_s is a list of 3 here; write _s.0.name=..., or replace it: '_s={...}'");
  says("++_s.kwargs.x=1", "_s is a list of 3 here; write _s.0.kwargs.x=..., or replace it");
  says("_s.7.name=b", "_s is a list of 3 here, which has no element 7; replace it: '_s=[...]'");
  says("loss_fn.plugin_config.l.x=1", "loss_fn.plugin_config.l is a list of 0 here; replace it: '");
  const std::string scheduler =
      "policy: {model_name: m, scheduler: [{name: LinearLR}, {name: ConstantLR}, {milestones: [3]}]}\n"
      "data: {train: {dataset_name: arithmetic}}\n";
  CHECK(resolve_error({"policy.scheduler.name=cosine"}, scheduler) ==
        "override 'policy.scheduler.name=cosine': policy.scheduler is a list of 3 here; write "
        "policy.scheduler.0.name=..., "
        "or replace it: 'policy.scheduler={...}'");
  CHECK(resolve_error({"+policy.scheduler.0.nmae=x"}, scheduler).find("did you mean policy.scheduler.0.name?") !=
        std::string::npos);
}
