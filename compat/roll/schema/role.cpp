#include "compat/roll/missing.hpp"
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

using Names = std::initializer_list<const char*>;

void add_unread(Schema& s, const std::string& at, Names names, const char* reason) {
  for (const char* name : names) s.add(at + "." + name, kAny, "", "").open().accepted(reason);
}

void add_model(Schema& s, const std::string& at) {
  s.section(at + ".model_args", "the model", kMap | kNull);
  const std::string model = at + ".model_args";
  s.add(model + ".model_name_or_path", kText | kNull, "null", "its directory; null: pretrain");
  s.add(model + ".dtype", kText | kNull, "bf16", "type of weights and activations").one_of({"bf16", "fp16", "fp32"});
  s.add(model + ".disable_gradient_checkpointing", kBool, "false", "keep activations instead of recomputing them");
  s.add(model + ".model_config_kwargs", kMap | kNull, "{}", "merged into the model's config.json").open();
  s.add(model + ".ulysses_size", kInt, "1", "FSDP2: ranks that share a sequence").at_least(1);
  s.add(model + ".moe_aux_loss_coef", kFloat | kNull, "null", "weight of the load-balancing loss").at_least(0);
  for (const char* name : {"lora_target", "adapter_name_or_path", "additional_target"}) {
    s.add(model + "." + name, kAny, "", "").unavailable(kAdapters, {"null"});
  }
  for (const char* name : {"lora_rank", "lora_alpha", "lora_dropout", "autocast_adapter_dtype"}) {
    s.add(model + "." + name, kAny, "", "").dormant();
  }
  s.add(model + ".freeze_module_prefix", kText | kList | kNull, "null", "")
      .unavailable("freezing parts of the model", {"null"});
  add_unread(s, model,
             {"attn_implementation", "flash_attn", "gradient_checkpointing_use_reentrant", "device_map", "model_type",
              "num_labels"},
             "the model and its kernels are this engine's own");
}

void add_training(Schema& s, const std::string& role) {
  s.section(role + ".training_args", "the optimizer and its steps", kMap | kNull);
  const std::string at = role + ".training_args.";
  s.add(at + "learning_rate", kFloat, "5e-5", "learning rate").at_least(0);
  s.add(at + "weight_decay", kFloat, "0", "weight decay").at_least(0);
  s.add(at + "adam_beta1", kFloat, "0.9", "decay rate of the first moment");
  s.add(at + "adam_beta2", kFloat, "0.999", "decay rate of the second moment");
  s.add(at + "adam_epsilon", kFloat, "1e-8", "added to the denominator");
  s.add(at + "lr_scheduler_type", kText, "linear", "form of the decay")
      .one_of({"linear", "cosine", "constant", "constant_with_warmup"})
      .not_built({"cosine_with_restarts", "polynomial", "inverse_sqrt", "reduce_lr_on_plateau"});
  s.add(at + "warmup_steps", kInt, "0", "steps of the warm-up").at_least(0);
  s.add(at + "warmup_ratio", kFloat, "0", "the same, as a part of max_steps").at_least(0).at_most(1);
  s.add(at + "per_device_train_batch_size", kInt, "8", "samples of a micro-batch").at_least(1);
  s.add(at + "gradient_accumulation_steps", kInt, "1", "micro-batches of an optimizer step").at_least(1);
  s.add(at + "num_train_epochs", kFloat | kNull, "null", "most passes over the data").above(0);
  add_unread(s, role + ".training_args",
             {"output_dir", "max_steps", "seed", "data_seed", "save_steps", "logging_steps"},
             "the key of the same name at the top is the one that is read");
  add_unread(s, role + ".training_args",
             {"dataloader_num_workers", "fp16", "bf16", "tf32", "save_hf_model", "do_train"},
             "the type is model_args.dtype; checkpoints convert to Hugging Face's form (hexad convert)");
}

void add_data(Schema& s, const std::string& role) {
  s.section(role + ".data_args", "prompts", kMap | kNull);
  const std::string at = role + ".data_args.";
  s.add(at + "file_name", kText | kList | kNull, "null", "JSONL files").elements(kText);
  s.add(at + "prompt", kText | kNull, "null", "column of the prompt; null: prompt");
  s.add(at + "response", kText | kNull, "null", "column of the expected answer; null: ground_truth");
  s.add(at + "dataset_type", kText | kList | kNull, "json", "").one_of({"json"}).not_built({"parquet", "csv", "text"});
  s.add(at + "domain_interleave_probs", kMap | kNull, "null", "which rewards are used, and how often").open();
  s.add(at + "template", kText | kNull, "native", "chat template");
  s.add(at + "messages", kText | kNull, "null", "")
      .accepted(
          "a prompt is the text of the column prompt (data_args.prompt) as one message of the user, and its answer "
          "the column ground_truth (data_args.response); ROLL takes messages where rows have them");
  add_unread(s, role + ".data_args", {"preprocessing_num_workers", "id", "tag", "eval_file_name", "max_samples"},
             "rows are read from the files as they stand, in one pass");
  add_unread(s, role + ".data_args", {"dataset_dir", "interleave_probs"}, "ROLL reads this key nowhere");
  for (const char* name : {"image_max_pixels", "image_min_pixels", "video_max_pixels", "video_min_pixels",
                           "video_total_pixels", "video_fps", "video_max_frames", "video_resize_chunk_frames",
                           "image_folder", "video_folder", "audio_folder", "custom_data_kwargs_func"}) {
    s.add(at + name, kAny, "", "").unavailable(kMedia, {"null"});
  }
  // Generated data, and what else describes a dataset here, goes by Hexad's own keys.
  for (const std::string& path : config::core_schema().children("data.train")) {
    const std::string name = path.substr(path.rfind('.') + 1);
    if (s.find(at + name)) continue;
    Key own = *config::core_schema().find(path);
    s.add(at + name, own.kinds, "", own.meaning).open();
  }
}

void add_sampling(Schema& s, const std::string& role) {
  s.section(role + ".generating_args", "sampling", kMap | kNull);
  const std::string at = role + ".generating_args.";
  s.add(at + "temperature", kFloat, "0.95", "temperature").at_least(0);
  s.add(at + "top_p", kFloat, "0.7", "share of probability that is drawn from").above(0).at_most(1);
  s.add(at + "top_k", kInt | kNull, "50", "number of tokens that are drawn from; 0 or -1: all").at_least(-1);
  s.add(at + "stop_strings", kList | kNull, "null", "texts that end a response").elements(kText);
  s.add(at + "do_sample", kBool, "true", "")
      .unavailable("generation without sampling (temperature: 0 is greedy)", {"true"});
  s.add(at + "num_beams", kInt, "1", "").unavailable("beam search", {"1"});
  s.add(at + "repetition_penalty", kFloat, "1.0", "").unavailable("a penalty of repetition", {"1", "1.0"});
  s.add(at + "num_return_sequences", kInt, "1", "samples for each prompt").at_least(1);
  add_unread(s, role + ".generating_args", {"max_length", "max_new_tokens"},
             "sequence_length - prompt_length is the limit");
  add_unread(s, role + ".generating_args", {"length_penalty", "include_stop_str_in_output", "logprobs"},
             "log-probs of samples are always recorded; a stop string is part of its response");
}

void add_batching(Schema& s, const std::string& at) {
  s.add(at + ".infer_batch_size", kInt, "16", "samples in one log-prob pass").at_least(1);
  for (const char* when : {"train", "infer"}) {
    s.add(fmt::format("{}.use_dynamic_batching_in_{}", at, when), kBool, "false", "micro-batches formed by tokens");
    s.add(fmt::format("{}.max_tokens_per_microbatch_in_{}", at, when), kInt | kNull, "0", "their tokens").at_least(0);
    s.add(fmt::format("{}.sequence_length_round_in_{}", at, when), kInt, "4", "lengths are rounded up to it")
        .at_least(1);
  }
  s.add(at + ".use_sequence_packing", kBool, "false", "several sequences in a row");
  s.section(at + ".sequence_packing_args", "how", kMap | kNull);
  s.add(at + ".sequence_packing_args.algorithm", kText, "none", "").one_of({"none", "load_balance"});
  s.add(at + ".sequence_packing_args.max_packed_sequence_length_train", kInt | kNull, "null", "tokens of a row")
      .at_least(1);
  s.add(at + ".sequence_packing_args.max_packed_sequence_length_forward", kInt | kNull, "null", "the same, log-probs")
      .at_least(1);
  for (const char* name : {"min_num_micro_batches_train", "min_num_micro_batches_forward"}) {
    s.add(at + ".sequence_packing_args." + name, kInt, "1", "").unavailable("a least number of micro-batches", {"1"});
  }
  s.add(at + ".use_remove_padding", kBool, "false", "")
      .accepted("ROLL reads this key nowhere; see use_sequence_packing");
}

void add_role(Schema& s, const std::string& at, const char* meaning) {
  s.section(at, meaning, kMap | kNull);
  add_model(s, at);
  add_training(s, at);
  add_data(s, at);
  add_sampling(s, at);
  add_batching(s, at);
  s.section(at + ".strategy_args", "what runs it", kMap | kNull);
  s.add(at + ".strategy_args.strategy_name", kText | kNull, "null", "strategy");
  s.add(at + ".strategy_args.strategy_config", kMap | kNull, "{}", "its settings").open();
  s.add(at + ".device_mapping", kText | kList | kNull, "null", "devices, e.g. list(range(0,8))").elements(kInt);
  s.add(at + ".world_size", kInt | kNull, "null", "processes, without device_mapping").at_least(1);
  s.add(at + ".router_replay.mode", kText, "disable",
        "training replays expert choices: R2 those of its own log-prob pass, R3 the generator's")
      .one_of({"disable", "R2", "R3"});
  s.section(at + ".router_replay", "router replay", kMap | kNull);
  s.add(at + ".mtp_training_mode", kText | kNull, "disabled", "")
      .unavailable("training of multi-token prediction", {"disabled", "null"});
  s.add(at + ".apply_loss_scale", kBool, "true", "").unavailable("another scale of the loss", {"true"});
  add_unread(s, at,
             {"name", "worker_cls", "num_gpus_per_worker", "model_update_frequency", "backend_timeout", "system_envs",
              "max_concurrency", "offload_nccl"},
             "of ROLL's Ray workers; here one process a rank trains and generates");
  add_unread(s, at, {"logits_in_fp32"}, "log-probs are always computed in float32");
  add_unread(s, at, {"eval_steps"}, "ROLL reads it at the top of a file alone");
  add_unread(s, at, {"topr_positive_weight", "topr_negative_weight", "opd_kl_coef", "tag_included"},
             "of an algorithm that is not available");
}

}  // namespace

void add_roles(Schema& s) {
  add_role(s, "actor_train", "the policy that is trained");
  s.add("actor_train.pg_variant", kText | kNull, "null", "the loss")
      .one_of({"ppo"})
      .not_built({"vanilla", "tis", "topr", "cispo", "kimi15"});
  add_role(s, "actor_infer", "the generator");
  add_role(s, "reference", "the reference policy");
  add_role(s, "validation", "validation prompts");
  s.add("critic", kMap | kNull, "", "").open().accepted("grpo and reinforce do without a critic");
  s.add("reward", kMap | kNull, "", "").open().accepted("rewards.<domain> is the block that is read");
  s.add("reward_model", kMap | kNull, "", "").open().unavailable("a reward model", {"null"});
  s.add("val_greedy", kBool, "false", "").unavailable("greedy validation");
  s.add("val_n_sample", kInt, "1", "samples for each validation prompt").at_least(1);
  s.add("global_template", kText | kNull, "null", "chat template");
  s.add("tag_to_template", kMap | kNull, "{}", "").open().unavailable("a chat template for each tag", {"{}", "null"});
  s.add("dataset_filter", kMap | kNull, "{}", "").open().unavailable("a filter of the data", {"{}", "null"});
}

}  // namespace hexad::config::roll
