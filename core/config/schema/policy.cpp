#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_tokenizer(Schema& s) {
  s.section("policy.tokenizer", "tokenizer and chat template");
  s.add("policy.tokenizer.name", kText, "${policy.model_name}",
        "model directory whose tokenizer is used, or a name in the Hub's cache")
      .not_filled();
  s.add("policy.tokenizer.chat_template", kText | kNull, "default",
        "\"default\": the tokenizer's own (of several \"tool_use\" for rows with tools); null: messages are joined as "
        "they are; *.jinja: a file; the name of one that the model has; else the template itself");
  s.add("policy.tokenizer.chat_template_kwargs", kMap | kNull, "null",
        "variables for the template, e.g. enable_thinking")
      .open();
  s.add("policy.tokenizer.use_fastokens", kBool, "false", "another tokenizer library")
      .accepted("this engine's tokenizer is the only one");
  s.add("policy.tokenizer.use_processor", kBool, "false", "multimodal processor")
      .unavailable("a vision or audio model");
  s.add("policy.tokenizer.audio", kMap | kNull, "null", "audio settings")
      .open()
      .unavailable("an audio model", {"null"});
  s.add("policy.tokenizer.video", kMap | kNull, "null", "video settings").open().unavailable("a video model", {"null"});
}

void add_quantization(Schema& s) {
  for (const char* key :
       {"quant_cfg", "quant_calib_data", "quant_calib_size", "quant_batch_size", "quant_sequence_length"}) {
    s.add(std::string("policy.") + key, kAny, "null", "quantisation-aware training")
        .unavailable("quantisation-aware training", {"null"});
  }
  s.add("policy.disable_modelopt_layer_spec", kBool, "false", "of quantisation-aware training").dormant();
  s.add("policy.dequantize_base_checkpoint", kBool, "false", "read a quantised checkpoint as bfloat16")
      .unavailable("reading a quantised checkpoint");
}

void add_draft(Schema& s) {
  s.section("policy.draft", "a draft model that is trained along").unavailable("a draft model", {});
  s.add("policy.draft.enabled", kBool, "false", "train a draft model").unavailable("a draft model");
  s.add("policy.draft.model_name", kText | kNull, "null", "its checkpoint");
  s.add("policy.draft.loss_weight", kFloat, "0.1", "weight of its loss").at_least(0);
  s.add("policy.draft.num_layers", kInt | kNull, "null", "its layers").at_least(1);
  s.add("policy.draft.aux_layer_indices", kList | kNull, "null", "layers whose states it reads").elements(kInt);
}

void add_retired(Schema& s) {
  s.add("policy.generation_batch_size", kInt, "32", "batch size of generation with Hugging Face")
      .accepted("the generator batches continuously; see policy.generation.native_cfg.max_num_seqs");
  s.add("policy.fsdp_offload_enabled", kBool, "false", "CPU offload of NeMo-RL 0.3's first backend")
      .accepted("the backend's own section has the key that is read");
  s.add("policy.activation_checkpointing_enabled", kBool, "false", "of NeMo-RL 0.3's first backend")
      .accepted("the backend's own section has the key that is read");
  s.add("policy.refit_buffer_size_gb", kFloat | kNull, "null", "size of the buckets of a weight update")
      .accepted("buckets hold 256 MiB, or one weight");
  s.add("policy.offload_optimizer_for_refit", kBool, "false", "free the optimizer's memory during a weight update")
      .accepted("a weight update needs room for one more set of the generator's weights");
  s.add("policy.offload_optimizer_for_logprob", kBool, "false",
        "free the optimizer's memory while log-probs are computed")
      .accepted("the optimizer's state stays where it is");
}

}  // namespace

void add_policy(Schema& s) {
  s.section("policy", "the model that is trained");
  s.add("policy.model_name", kText, "",
        "Hugging Face model directory, or a name of the Hub (Qwen/Qwen2.5-1.5B, gpt2; @revision) that `hf download` "
        "has put into the cache; nothing is downloaded here");
  s.add("policy.backend", kText, "",
        "the plugin that trains: a name that `hexad plugin list` shows, or a path; if absent, the one whose section is "
        "enabled");
  s.add("policy.plugin_config", kMap | kNull, "{}", "keys of the backend plugin's own").open();
  s.add(
       "policy.random_init_seed", kInt | kNull, "null",
       "a model directory without weights starts from random ones drawn with this seed (it is not used where there are "
       "weights); null: missing weights are an error")
      .at_least(0)
      .for_backend();
  add_tokenizer(s);
  s.add("policy.hf_config_overrides", kMap | kNull, "{}", "merged into the model's config.json").open();
  s.add("policy.train_global_batch_size", kInt, "512",
        "samples in one optimizer step; a step's samples are a multiple of it")
      .at_least(1);
  s.add("policy.train_micro_batch_size", kInt, "4", "samples in one forward and backward pass").at_least(1);
  s.add("policy.logprob_batch_size", kInt, "${policy.train_micro_batch_size}", "samples in one log-prob pass")
      .at_least(1);
  s.add("policy.max_total_sequence_length", kInt, "512", "most tokens of prompt and response")
      .at_least(1)
      .at_most(1 << 30);
  s.add("policy.make_sequence_length_divisible_by", kInt, "1", "sequences are padded to a multiple of this")
      .at_least(1);
  s.add("policy.precision", kText, "bfloat16",
        "type of weights and activations in computation; master weights are float32")
      .one_of({"bfloat16", "float16", "float32"});
  s.add("policy.deterministic", kBool, "false", "fixed tiling and reduction order: results do not depend on batching");
  s.add(
      "policy.batch_invariant", kBool, "false",
      "on GPUs, log-probs of the rollout and of training are equal bit for bit: both run kernels whose results do not "
      "depend on the batch; dense models, native generator");
  s.add("policy.logprob_chunk_size", kInt | kNull, "null", "tokens whose logits are held at once; null: chosen by size")
      .at_least(1)
      .for_backend();
  s.add("policy.max_grad_norm", kFloat | kNull, "1.0", "gradients are clipped to this global norm; null: not").above(0);
  add_draft(s);
  s.section("policy.router_replay", "training sends tokens to the experts that an earlier pass chose for them");
  s.add("policy.router_replay.enabled", kBool, "false",
        "replay the choice; how much each expert counts is not replayed")
      .not_filled()
      .for_backend();
  s.add(
       "policy.router_replay.source", kText, "rollout",
       "whose choice: the generator's (rollout; NeMo-RL's meaning), or that of training's own log-prob pass (logprobs)")
      .one_of({"rollout", "logprobs"})
      .not_filled();
  s.section("policy.reward_model_cfg",
            "a reward model: a head that gives each sequence a score, in the place of logits");
  s.add("policy.reward_model_cfg.enabled", kBool, "true", "the model has that head; implied by rm").not_filled();
  s.add("policy.reward_model_cfg.reward_model_type", kText, "bradley_terry", "what its scores are trained for")
      .one_of({"bradley_terry"})
      .not_built({"regression"})
      .not_filled();
  s.add("policy.is_vlm", kBool, "false", "the model sees images").unavailable("a vision model");
  add_quantization(s);
  add_retired(s);
}

}  // namespace hexad::config
