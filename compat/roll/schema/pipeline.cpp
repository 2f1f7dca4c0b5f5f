#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

// Keys without a part in this engine, under one reason.
void add_unused(Schema& s, std::initializer_list<const char*> names, const char* reason) {
  for (const char* name : names) s.add(name, kAny, "", "").open().accepted(reason);
}

void add_steps(Schema& s) {
  s.add("exp_name", kText, "roll", "name of the run, a folder below logging_dir and output_dir");
  s.add("seed", kInt, "42", "seed").at_least(0);
  s.add("max_steps", kInt, "500", "steps").at_least(1);
  s.add("save_steps", kInt, "50", "a checkpoint every so many steps").at_least(1);
  s.add("eval_steps", kInt, "10", "a validation every so many steps").at_least(0);
  s.add("max_ckpt_to_keep", kInt, "0", "checkpoints kept; 0: all").at_least(0);
  s.add("rpc_timeout", kFloat, "3600", "seconds until a silent worker ends the run").above(0);
  s.add("logging_steps", kInt, "1", "").accepted("every step is logged");
  s.add("resume_from_checkpoint", kBool | kText, "false", "")
      .accepted("a run goes on from the latest checkpoint in its folder, if there is one");
}

void add_places(Schema& s) {
  s.add("logging_dir", kText, "./output/logs", "folder of logs");
  s.add("output_dir", kText, "./output", "folder of checkpoints");
  s.section("checkpoint_config", "where checkpoints go", kMap | kNull);
  s.add("checkpoint_config.type", kText | kNull, "null", "").one_of({"file_system"}).not_built({"modelscope", "oss"});
  s.add("checkpoint_config.output_dir", kText | kNull, "null", "their folder; null: output_dir/exp_name");
  s.add("checkpoint_config.async_upload", kBool, "false", "").accepted("checkpoints are written where they belong");
  s.add("track_with", kText | kNull, "tensorboard", "where metrics go, beside metrics.jsonl");
  add_unused(s,
             {"base_dir", "rollout_dump_dir", "length_profiler_dir", "profiler_output_dir", "otlp_output_dir",
              "save_logging_board_dir"},
             "everything about a run is written into its log folder");
  s.add("tracker_kwargs", kMap | kNull, "", "").open();
}

void add_lengths(Schema& s) {
  s.add("rollout_batch_size", kInt, "128", "prompts of a step").at_least(1);
  s.add("val_batch_size", kInt, "128", "prompts of a validation batch").at_least(1);
  s.add("num_return_sequences_in_group", kInt, "1", "samples for each prompt").at_least(1);
  s.add("prompt_length", kInt, "1024", "most tokens of a prompt").at_least(1);
  s.add("response_length", kInt | kNull, "null", "most tokens of a response").at_least(1);
  s.add("sequence_length", kInt | kNull, "null", "most tokens of both, in place of response_length").at_least(1);
  for (const char* name : {"val_prompt_length", "val_sequence_length"}) {
    s.add(name, kInt | kNull, "null", "").at_least(1).accepted("validation has the lengths of training");
  }
  s.add("num_gpus_per_node", kInt, "8", "devices of a node").at_least(1);
  s.add("pretrain", kText | kNull, "null", "Hugging Face model directory");
}

}  // namespace

void add_pipeline(Schema& s) {
  add_steps(s);
  add_places(s);
  add_lengths(s);
  s.add("ppo_epochs", kInt, "1", "").unavailable("training more than once on a rollout", {"1"});
  s.add("async_generation_ratio", kFloat, "0", "steps that samples may be old; 0: none is").at_least(0);
  s.add("is_use_additional_prompts", kBool, "false", "").unavailable("issuing more prompts than a step trains on");
  add_unused(s,
             {"generate_opt_level", "is_num_return_sequences_expand", "max_running_requests",
              "max_additional_running_prompts", "user_defined_rollout_loop_cls", "router_args"},
             "the generator batches continuously; policy.generation.native_cfg has its limits");
  add_unused(s, {"is_offload_states", "is_offload_optimizer_states_in_train_step", "offload_nccl"},
             "trainer and generator of a rank share its weights; nothing is moved out between phases");
  add_unused(s, {"model_update_buffer_size_mb", "transfer_backend"}, "buckets hold 256 MiB, or one weight");
  add_unused(s, {"system_envs"}, "set variables in the environment of `hexad train`; the workers inherit it");
  add_unused(s, {"profiler_timeline", "profiler_memory", "report_length_and_rewards"},
             "not available; metrics.jsonl has times, lengths and rewards of every step");
  s.section("rollout_mock", "rollouts written down, or read in", kMap | kNull);
  s.add("rollout_mock.enable", kBool, "false", "do so");
  s.add("rollout_mock.mode", kText, "dump", "which of the two").one_of({"dump", "mock"});
  s.add("rollout_mock.dump_dir", kText, "./rollout_mock_dumps", "where");
  add_unused(s, {"model_download_type"}, "nothing is downloaded: pretrain is a folder");
  add_unused(s, {"hydra", "local_rank", "num_nodes"}, "of ROLL's launcher; nodes follow from device_mapping");
  add_unused(s, {"reward_pretrain"}, "no model gives rewards here");
}

}  // namespace hexad::config::roll
