// NeMo-RL's form of an evaluation.
#include "tests/compat/support.hpp"

using namespace compat_test;

TEST_CASE("multichoice is the letter of a choice, in English or in the language of the data") {
  const std::string key = "env.math.verifier_type";
  const auto verifier = [&](const std::string& dataset) {
    const auto resolved = resolve_text({}, "eval: {}\ngeneration: {model_name: m}\ndata: {dataset_name: " + dataset +
                                               "}\nenv: {math: {verifier_type: multichoice}}\n");
    const std::string means = resolved.root.as_string(key);
    CHECK(has_notice(resolved, key, "'multichoice' means " + means + " here"));
    return means;
  };
  CHECK(verifier("gpqa") == "english_multichoice");
  CHECK(verifier("mmlu") == "english_multichoice");
  CHECK(verifier("mmlu_pro") == "english_multichoice");
  CHECK(verifier("mmlu_ZH-CN") == "multilingual_multichoice");
}

TEST_CASE("NeMo-RL's form of an evaluation comes to that of a run") {
  const std::string form = R"(
eval: {metric: "pass@k", num_tests_per_prompt: 1, seed: 42, k_value: 1, save_path: null}
generation:
  backend: vllm
  max_new_tokens: ${generation.vllm_cfg.max_model_len}
  temperature: 0.0
  top_p: 1.0
  top_k: -1
  val_temperature: ${.temperature}
  num_prompts_per_step: -1
  model_name: some/model
  vllm_cfg: {precision: bfloat16, max_model_len: 96}
tokenizer: {name: "${generation.model_name}", chat_template: default}
data: {max_input_seq_length: "${generation.vllm_cfg.max_model_len}", dataset_name: AIME2024,
       processor: math_hf_data_processor}
env: {math: {num_workers: 8}}
cluster: {gpus_per_node: 1, num_nodes: 1}
)";
  const hexad::yaml::Node root =
      resolve_text({"generation.model_name=other/model", "policy.precision=float32"}, form).root;
  CHECK(root.as_string("policy.model_name") == "other/model");
  CHECK(root.as_string("policy.tokenizer.name") == "other/model");
  CHECK(root.as_int("policy.generation.max_new_tokens") == 96);
  CHECK(root.as_int("policy.max_total_sequence_length") == 96);
  CHECK(root.as_string("policy.precision") == "float32");
  CHECK(root.as_int("eval.num_prompts_per_step") == -1);
  CHECK_FALSE(root.child("generation"));
  const Files files({{"eval.yaml", form}, {"old.yaml", R"(
defaults: eval.yaml
eval: {num_tests_per_prompt: 4, pass_k_value: 2}
generation: {temperature: 0.5}
data: {dataset_name: local, problem_key: Question, solution_key: Answer, data_paths: math.csv, file_format: csv}
)"}});
  const hexad::yaml::Node older =
      hexad::config::resolve(files / "old.yaml", {"~eval.k_value"}, hexad::compat::all()).root;
  CHECK(older.as_int("eval.k_value") == 2);
  CHECK(older.as_string("data.input_key") == "Question");
  CHECK(older.as_string("data.output_key") == "Answer");
  CHECK(older.as_string("data.data_path") == "math.csv");
  CHECK(older.as_string("data.dataset_name") == "ResponseDataset");
  check_says(resolve_error({"eval.k_value=2"}, form),
             "eval.k_value: got 2, wanted at most eval.num_tests_per_prompt, which is 1");
  check_says(resolve_error({"eval.num_tests_per_prompt=2"}, form),
             "eval.num_tests_per_prompt: got 2, and with temperature 0 or top_k 1 all samples of a prompt are the "
             "same; nearest: 1");
  CHECK(resolve_text({"eval.metric=cons@k"}, form).root.as_string("eval.metric") == "cons@k");
  check_says(resolve_error({"generation.temperatur=1"}, form), "temperatur");
}
