#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

// The keys that describe a dataset, wherever one is described.
void add_dataset(Schema& s, const std::string& at) {
  s.add(at + ".dataset_name", kText | kNull, "",
        "arithmetic, puzzle, sliding_puzzle, ResponseDataset, openai_format, PreferenceDataset, "
        "BinaryPreferenceDataset, or a dataset NeMo-RL names");
  s.add(at + ".data_path", kText | kNull, "",
        "JSONL file, local Hugging Face dataset directory, or a name in the Hub's cache");
  s.add(at + ".input_key", kText | kNull, "", "column of the prompt; without it the columns tell a ResponseDataset's");
  s.add(at + ".output_key", kText | kNull, "", "column of the expected answer");
  s.add(at + ".subset", kText | kNull, "", "folder of that name in data_path: a subset of a Hugging Face dataset");
  s.add(at + ".split", kText | kNull, "", "split of a Hugging Face dataset");
  s.add(at + ".split_validation_size", kFloat, "", "rows split off for validation: a share (below 1) or a number")
      .at_least(0);
  s.add(at + ".seed", kInt, "", "seed of that split, and of generated data");
  s.add(at + ".repeat", kInt, "", "how often the data is repeated").at_least(1);
  s.add(at + ".prompt_file", kText | kNull, "", "text file in which {} stands for the prompt");
  s.add(at + ".system_prompt_file", kText | kNull, "", "text file of the system prompt");
  s.add(at + ".processor", kText, "", "how a row becomes a prompt")
      .not_built({"vlm_hf_data_processor", "nemo_gym_data_processor", "kd_data_processor"});
  s.add(at + ".env_name", kText, "", "environment that gives the reward")
      .not_built({"code", "code_jaccard", "reward_model", "vlm", "nemo_gym"});
  s.add(at + ".task_name", kText | kNull, "", "name of the dataset in NeMo-RL")
      .accepted("metrics do not tell datasets apart; env_name and processor are set for each dataset");
  s.add(at + ".max_samples", kInt | kNull, "", "of the files' rows, only the first so many").at_least(1);
  s.add(at + ".chat_key", kText | kNull, "", "openai_format: column of the messages");
  s.add(at + ".system_key", kText | kNull, "", "openai_format: column of the system prompt");
  s.add(at + ".system_prompt", kText | kNull, "", "openai_format: the system prompt itself");
  s.add(at + ".tool_key", kText | kNull, "", "openai_format: column of the tools");
  s.add(at + ".prompt_key", kText | kNull, "", "BinaryPreferenceDataset: column of the prompt (prompt)");
  s.add(at + ".chosen_key", kText | kNull, "", "BinaryPreferenceDataset: column of the better answer (chosen)");
  s.add(at + ".rejected_key", kText | kNull, "", "BinaryPreferenceDataset: column of the worse answer (rejected)");
  s.add(at + ".download_dir", kText | kNull, "", "where NeMo-RL downloads to")
      .accepted("nothing is downloaded; give data_path");
  for (const char* key : {"data_files", "text_key", "characters_per_sample", "allowed_problem_types", "file_format",
                          "problem_key", "solution_key", "use_preserving_dataset"}) {
    s.add(at + "." + key, kAny, "", "of a dataset class of NeMo-RL's")
        .accepted("of a dataset class of NeMo-RL's; JSONL rows are described by input_key and output_key");
  }
}

// What NeMo-RL makes of a dataset's videos.
void add_media(Schema& s, const std::string& at) {
  const auto key = [&](const char* name, Kinds kinds, const char* meaning) {
    s.add(at + "." + name, kinds | kNull, "", meaning).accepted("prompts are text");
  };
  key("num_frames", kInt, "frames of a video");
  key("video_sampling_style", kText, "which frames");
  key("video_target_num_patches", kInt, "patches of a frame");
  key("video_temporal_patch_size", kInt, "frames of a patch");
  key("video_maintain_aspect_ratio", kBool, "frames keep their proportions");
}

// Keys of the generated datasets.
void add_generated(Schema& s, const std::string& at) {
  s.add(at + ".size", kInt | kNull, "", "generated data: training questions").at_least(1);
  s.add(at + ".validation_size", kInt | kNull, "", "generated data: validation questions").at_least(0);
  s.add(at + ".held_out", kFloat | kNull, "", "generated data: part of all questions kept for validation")
      .at_least(0)
      .at_most(1);
  s.add(at + ".question", kText | kNull, "", "generated data: its text, {} where the instance goes");
  s.add(at + ".operators", kList | kNull, "", "arithmetic: of + - *").elements(kText);
  s.add(at + ".min_operand", kInt | kNull, "", "arithmetic: smallest operand");
  s.add(at + ".max_operand", kInt | kNull, "", "arithmetic: largest operand");
  s.add(at + ".kind", kText | kNull, "", "puzzle: which");
  s.add(at + ".length", kInt | kList | kNull, "",
        "puzzle: symbols of an instance, or [least, most]; sliding_puzzle: tiles a side")
      .elements(kInt);
  s.add(at + ".alphabet", kText | kNull, "", "puzzle: the symbols");
  s.add(at + ".shuffle_moves", kInt | kNull, "", "sliding_puzzle: random moves from the solved board, at most")
      .at_least(1);
}

}  // namespace

void add_data(Schema& s) {
  s.section("data", "training and validation prompts");
  s.add("data.max_input_seq_length", kInt | kNull, "${policy.max_total_sequence_length}",
        "longest prompt in tokens; a longer one is cut and left out of the loss")
      .at_least(1);
  s.add("data.shuffle", kBool, "true", "draw prompts in random order");
  s.add("data.num_workers", kInt, "1", "processes that prepare prompts")
      .at_least(0)
      .accepted("prompts are prepared by threads of the controller");
  s.add("data.use_multiple_dataloader", kBool, "false", "one loader for each dataset")
      .unavailable("several data loaders");
  s.add("data.num_prompts_per_dataloader", kInt | kNull, "null", "of several data loaders").dormant();
  s.add("data.custom_dataloader", kText | kNull, "null", "Python path of a loader")
      .unavailable("a loader in Python", {"null"});
  s.add("data.add_bos", kBool, "true", "sft: a conversation begins with the tokenizer's bos_token").not_filled();
  s.add("data.add_eos", kBool, "true", "sft: a conversation ends with the tokenizer's eos_token").not_filled();
  s.add("data.add_generation_prompt", kBool, "false",
        "sft: the template's generation prompt follows messages of the user and of tools")
      .not_filled();
  s.add("data.add_system_prompt", kBool, "false", "of NeMo-RL's sliding puzzle")
      .accepted("a system prompt is added where system_prompt_file names one");
  s.section("data.train", "the training set, or a list of several", kMap | kList | kNull);
  add_dataset(s, "data.train");
  add_media(s, "data.train");
  add_generated(s, "data.train");
  s.section("data.validation", "the validation set, or a list of several", kMap | kList | kNull);
  add_dataset(s, "data.validation");
  add_media(s, "data.validation");
  add_generated(s, "data.validation");
  s.section("data.default", "keys that datasets take over where they lack them", kMap | kNull);
  add_dataset(s, "data.default");
  add_media(s, "data.default");
  // NeMo-RL 0.3 described its one dataset right here.
  s.add("data.dataset_name", kText | kNull, "", "as data.train.dataset_name, when there is no data.train");
  for (const char* key : {"prompt_file", "system_prompt_file", "split", "output_key", "input_key", "data_path"}) {
    s.add(std::string("data.") + key, kText | kNull, "", std::string("as data.default.") + key);
  }
  s.add("data.processor", kText, "", "as data.default.processor")
      .not_built({"vlm_hf_data_processor", "nemo_gym_data_processor", "kd_data_processor"});
  s.add("data.env_name", kText, "", "as data.default.env_name")
      .not_built({"code", "code_jaccard", "reward_model", "vlm", "nemo_gym"});
  s.add("data.repeat", kInt, "", "as data.default.repeat").at_least(1);
}

}  // namespace hexad::config
