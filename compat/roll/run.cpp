// The run itself: steps, lengths, folders, model, devices.
#include <filesystem>

#include "compat/roll/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::config::roll {
namespace {

using Devices = std::vector<int64_t>;

void set_validation(Pass& p) {
  const bool validates = p.file.section("validation") || p.file.given("actor_train.data_args.dataset_name");
  const int64_t batch = p.file.integer("val_batch_size").value_or(128);
  p.set("grpo.val_period", validates ? p.file.integer("eval_steps").value_or(10) : int64_t{0}, "eval_steps");
  p.set("grpo.val_at_start", validates, "eval_steps");
  p.set("grpo.val_batch_size", batch, "val_batch_size");
  p.set("grpo.max_val_samples", {}, "val_batch_size");  // ROLL validates on all rows
  p.move_given(p.file, "val_n_sample", "grpo.val_num_generations_per_prompt");
}

void set_lengths(Pass& p) {
  const int64_t prompt = p.file.integer("prompt_length").value_or(1024);
  const std::optional<int64_t> response = p.file.integer("response_length"), both = p.file.integer("sequence_length");
  if (!response && !both) {
    return p.file.error("response_length", "is missing: give it, or sequence_length for prompt and response together");
  }
  const char* from = both ? "sequence_length" : "response_length";
  const int64_t total = both ? *both : prompt + *response;
  if (total <= prompt) {
    return p.file.error(
        from, fmt::format("got {}, wanted more than prompt_length {}; nearest: {}", total, prompt, prompt + 1));
  }
  p.set("policy.max_total_sequence_length", total, from);
  p.set("policy.generation.max_new_tokens", total - prompt, from);
  p.set("data.max_input_seq_length", prompt, "prompt_length");
}

// Of rollouts that a run writes down, the samples log is the counterpart; none reads them in.
void check_mock(Pass& p) {
  const bool on = p.file.flag("rollout_mock.enable");
  const std::string mode = p.file.text("rollout_mock.mode").value_or("dump");
  p.file.text("rollout_mock.dump_dir");
  if (on && mode == "mock") {
    p.file.missing("rollout_mock.mode", "training on rollouts of an earlier run",
                   "; nearest: rollout_mock.enable: false");
  } else if (on) {
    p.file.notice("rollout_mock", "not read: the samples of every step are in the log folder");
  }
}

// The arguments of the service's own `init`. A key of the user's stands in the environment here, and the tracker writes
// into the log folder.
void set_tracker(Pass& p, const std::string& tracker) {
  const yaml::Node* given = p.file.given("tracker_kwargs");
  const bool is_sent = tracker == "wandb" || tracker == "swanlab";
  if (is_sent) p.set("logger." + tracker + "_enabled", true, "track_with");
  if (!given || !given->is_map() || given->entries().empty()) return;
  std::vector<std::string> left;
  for (const auto& [name, value] : given->entries()) {
    const bool stays = !is_sent || name == "api_key" || name == "login_kwargs" || name == "log_dir" || name == "logdir";
    stays ? left.push_back(name) : p.out.set("logger." + tracker + "." + name, value);
  }
  if (!left.empty())
    p.file.notice("tracker_kwargs", fmt::format("{}: not used: metrics are in the log folder, and a service's key "
                                                "stands in the environment (docs/trackers.md)",
                                                joined(left)));
}

void set_folders(Pass& p) {
  const std::string name = p.file.text("exp_name").value_or("roll");
  const auto below = [&](const std::string& folder) {
    return (std::filesystem::path(folder) / name).lexically_normal().string();
  };
  p.set("logger.log_dir", below(p.file.text("logging_dir").value_or("./output/logs")), "logging_dir");
  const std::string tracker = p.file.text("track_with").value_or("stdout");
  p.set("logger.tensorboard_enabled", tracker == "tensorboard", "track_with");
  set_tracker(p, tracker);
  if (tracker != "wandb" && tracker != "swanlab" && tracker != "tensorboard" && tracker != "stdout")
    p.file.notice("track_with", fmt::format("'{}': what there is instead is in docs/trackers.md", tracker));
  const std::optional<std::string> folder = p.file.text("checkpoint_config.output_dir");
  p.file.text("checkpoint_config.type");
  const std::string otherwise = below(p.file.text("output_dir").value_or("./output"));
  p.set("checkpointing.checkpoint_dir", folder ? *folder : otherwise,
        folder ? "checkpoint_config.output_dir" : "output_dir");
  p.set("checkpointing.metric_name", {}, "max_ckpt_to_keep");
  const int64_t kept = p.file.integer("max_ckpt_to_keep").value_or(0);
  p.set("checkpointing.keep_top_k", kept > 0 ? yaml::Node::Value(kept) : yaml::Node::Value(), "max_ckpt_to_keep");
}

void set_model(Pass& p) {
  const char* const own = "actor_train.model_args.model_name_or_path";
  const bool named = p.file.text(own).has_value();
  if (!named && !p.file.text("pretrain")) {
    return p.file.error("pretrain", "is missing: give the Hugging Face directory of the model");
  }
  p.move(named ? own : "pretrain", "policy.model_name");
  p.move_given(p.file, "actor_train.model_args.model_config_kwargs", "policy.hf_config_overrides");
  const std::string type = p.file.text("actor_train.model_args.dtype").value_or("bf16");
  p.set("policy.precision",
        std::string(type == "fp32"   ? "float32"
                    : type == "fp16" ? "float16"
                                     : "bfloat16"),
        "actor_train.model_args.dtype");
}

std::optional<Devices> devices_of(Pass& p, const std::string& role) {
  const std::string key = role + ".device_mapping";
  const yaml::Node* given = p.file.given(key);
  if (!given) return std::nullopt;
  std::optional<Devices> devices = device_mapping(*given);
  if (devices) {
    std::ranges::sort(*devices);
  } else if (given->is_string() || given->is_list()) {
    p.file.error(key, fmt::format("got {}, wanted different device ids: list(range(0,8)), [0, 1], or a sum of those",
                                  given->describe()));
  }
  return devices;
}

const char *const kTrainKey = "actor_train.device_mapping", *const kInferKey = "actor_infer.device_mapping";

// The devices of the generator where it has its own; nothing where it shares those of actor_train.
std::optional<Devices> own_devices(Pass& p, const Devices& train) {
  const std::optional<Devices> infer = devices_of(p, "actor_infer");
  if (!infer || *infer == train) return std::nullopt;
  if (std::ranges::includes(train, *infer)) {
    p.file.notice(kInferKey, fmt::format("every one of the {} ranks of actor_train generates, not only {} of them",
                                         train.size(), infer->size()));
    return std::nullopt;
  }
  Devices both;
  std::ranges::set_intersection(train, *infer, std::back_inserter(both));
  if (both.empty()) return infer;
  p.file.missing(kInferKey, "generation on devices of which only some train",
                 fmt::format("; {} of the {} devices are actor_train's and the others are not, wanted all of them or "
                             "none; nearest: those of actor_train",
                             both.size(), infer->size()));
  return std::nullopt;
}

constexpr const char* kPartsOfNodes = "a run on parts of several nodes";

// How many nodes the devices take up; nothing where they are several and not whole ones.
std::optional<int64_t> nodes_of(const Devices& devices, int64_t per_node) {
  const auto count = static_cast<int64_t>(devices.size());
  if (devices.back() / per_node == devices.front() / per_node) return 1;
  const bool whole =
      devices.front() % per_node == 0 && count % per_node == 0 && devices.back() - devices.front() + 1 == count;
  return whole ? std::optional(count / per_node) : std::nullopt;
}

void set_one_node(Pass& p, const Devices& train, const Devices& infer) {
  p.set("cluster.num_nodes", int64_t{1}, kTrainKey);
  p.set("cluster.gpus_per_node", static_cast<int64_t>(train.size() + infer.size()), kTrainKey);
  p.set("policy.generation.colocated.resources.gpus_per_node", static_cast<int64_t>(infer.size()), kInferKey);
}

// Generation on devices of its own: the last ranks of the run.
void set_apart(Pass& p, const Devices& train, const Devices& infer, int64_t per_node) {
  p.set("policy.generation.colocated.enabled", false, kInferKey);
  if (std::max(train.back(), infer.back()) / per_node == std::min(train.front(), infer.front()) / per_node)
    return set_one_node(p, train, infer);
  const std::optional<int64_t> train_nodes = nodes_of(train, per_node), infer_nodes = nodes_of(infer, per_node);
  if (!train_nodes || !infer_nodes || std::ssize(train) % per_node != 0 || std::ssize(infer) % per_node != 0) {
    for (const char* key : {kTrainKey, kInferKey}) {
      p.file.missing(key, kPartsOfNodes,
                     fmt::format("; {} devices that train and {} that generate lie on several nodes of "
                                 "num_gpus_per_node {}, wanted whole nodes for both",
                                 train.size(), infer.size(), per_node));
    }
    return set_one_node(p, train, infer);
  }
  p.set("cluster.num_nodes", *train_nodes + *infer_nodes, kTrainKey);
  p.set("cluster.gpus_per_node", per_node, kTrainKey);
  p.set("policy.generation.colocated.resources.num_nodes", *infer_nodes, kInferKey);
}

}  // namespace

void translate_places(Pass& p) {
  p.set("checkpointing.enabled", true, "save_steps");
  p.move("save_steps", "checkpointing.save_period");
  p.move("rpc_timeout", "cluster.worker_timeout_s");
  set_folders(p);
  set_model(p);
}

void translate_run(Pass& p) {
  p.move("seed", "grpo.seed");
  p.move("max_steps", "grpo.max_num_steps");
  const std::optional<double> epochs = p.file.number("actor_train.training_args.num_train_epochs");
  // ROLL starts the data anew until max_steps.
  p.set("grpo.max_num_epochs", epochs ? std::max<int64_t>(static_cast<int64_t>(*epochs), 1) : int64_t{1'000'000},
        "actor_train.training_args.num_train_epochs");
  p.move("rollout_batch_size", "grpo.num_prompts_per_step");
  p.move("num_return_sequences_in_group", "grpo.num_generations_per_prompt");
  set_validation(p);
  set_lengths(p);
  check_mock(p);
}

void translate_devices(Pass& p) {
  const char* const key = kTrainKey;
  const std::optional<Devices> train = devices_of(p, "actor_train");
  const int64_t per_node = std::max<int64_t>(p.file.integer("num_gpus_per_node").value_or(8), 1);
  if (!train) {
    p.ranks = std::max<int64_t>(p.file.integer("actor_train.world_size").value_or(1), 1);
    p.set("cluster.gpus_per_node", p.ranks, "actor_train.world_size");
    if (!p.file.given(key)) p.set("cluster.device", std::string("cpu"), key);
    return;
  }
  p.ranks = static_cast<int64_t>(train->size());
  if (const std::optional<Devices> infer = own_devices(p, *train)) return set_apart(p, *train, *infer, per_node);
  const std::optional<int64_t> nodes = nodes_of(*train, per_node);
  if (!nodes) {
    const int64_t whole = (p.ranks + per_node - 1) / per_node * per_node;
    p.file.missing(key, kPartsOfNodes,
                   fmt::format("; {} devices over several nodes of num_gpus_per_node {}, wanted whole nodes; "
                               "nearest: list(range(0,{}))",
                               p.ranks, per_node, whole));
  }
  p.set("cluster.num_nodes", nodes.value_or(1), key);
  p.set("cluster.gpus_per_node", nodes.value_or(1) == 1 ? p.ranks : per_node, key);
}

}  // namespace hexad::config::roll
