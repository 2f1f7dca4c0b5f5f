// Links that lie where a run writes, and in the folders that it copies from.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using namespace toy::names;
namespace fs = toy::fs;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run writes through no link that lies in its folder of checkpoints, and says which it is") {
  const TempDir dir;
  const auto precious = dir.write("precious", "precious");
  fs::create_directory(dir / "checkpoints");
  fs::create_symlink(precious, dir / "checkpoints/.lock");
  const Ended link = toy::run(toy::train(dir));
  CHECK(link.code == 2);
  CHECK_MESSAGE(contains(link.err, fmt::format("checkpointing.checkpoint_dir: cannot write {}: it is a symbolic link, "
                                               "and nothing is written through one. Remove the link",
                                               (dir / "checkpoints/.lock").string())),
                link.err);
  fs::remove(dir / "checkpoints/.lock");
  fs::create_hard_link(precious, dir / "checkpoints/.lock");
  const Ended hard = toy::run(toy::train(dir));
  CHECK(hard.code == 2);
  CHECK_MESSAGE(contains(hard.err, "checkpoints/.lock: it is a hard link, and nothing is written through one"),
                hard.err);
  fs::remove(dir / "checkpoints/.lock");

  // Names under which a run makes files and folders: it puts its own in their place.
  for (const char* name : {"tmp_step_2", "old_step_2", "latest_checkpoint_status.json", "step_2"})
    fs::create_symlink(precious, dir / "checkpoints" / name);
  fs::create_directory(dir / "mine");
  dir.write("mine/file", "precious");
  fs::create_directory_symlink(dir / "mine", dir / "checkpoints/tmp_step_4");
  const Ended run = toy::run(toy::train(dir));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(toy::weights(dir, 2).size() > 0);
  CHECK(toy::weights(dir, 4).size() > 0);
  CHECK_FALSE(fs::is_symlink(dir / "checkpoints/latest_checkpoint_status.json"));
  CHECK(toy::read_text(precious) == "precious");
  CHECK(toy::read_text(dir / "mine/file") == "precious");
}

TEST_CASE("a tokenizer's file that a link names elsewhere does not come into checkpoints, which is said once") {
  const TempDir dir;
  fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "model");
  fs::rename(dir / "model/tokenizer_config.json", dir / "elsewhere.json");
  fs::create_symlink("../elsewhere.json", dir / "model/tokenizer_config.json");
  fs::rename(dir / "model/tokenizer.json", dir / "model/other_name.json");
  fs::create_symlink("other_name.json", dir / "model/tokenizer.json");
  const Ended run = toy::run(toy::train(dir, {"policy.model_name=" + (dir / "model").string()}));
  INFO(run.err);
  CHECK(run.code == 0);
  const std::string note = fmt::format(
      "note: checkpoints lack a file: {} is a link to {}, outside of {}, and a link out of a model's folder "
      "is not copied. Put the file in the place of the link",
      (dir / "model/tokenizer_config.json").string(), (dir / "elsewhere.json").string(), (dir / "model").string());
  const size_t said = run.err.find(note);
  REQUIRE(said != std::string::npos);
  CHECK(run.err.find(note, said + 1) == std::string::npos);
  for (const int step : {2, 4, 6}) {
    const fs::path tokenizer = dir / fmt::format("checkpoints/step_{}/policy/tokenizer", step);
    CHECK_FALSE(fs::exists(tokenizer / "tokenizer_config.json"));
    CHECK(fs::is_regular_file(fs::symlink_status(tokenizer / "tokenizer.json")));
    CHECK(toy::read_text(tokenizer / "tokenizer.json") == toy::read_text(dir / "model/other_name.json"));
    CHECK_FALSE(fs::exists(tokenizer.parent_path() / "weights/tokenizer_config.json"));
  }
}

TEST_CASE("a checkpoint has every file of the tokenizer, beside the weights too: that folder is a model as it is") {
  const TempDir dir;
  fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "model");
  const std::vector<std::string> names = {"added_tokens.json", "special_tokens_map.json", "merges.txt",
                                          "additional_chat_templates/tool_use.jinja"};
  fs::create_directory(dir / "model/additional_chat_templates");
  for (const std::string& name : names) dir.write("model/" + name, name.ends_with("json") ? "{}" : "text");
  const std::string text = toy::read_text(dir / "model/tokenizer_config.json");
  const size_t at = text.find("\"{%") + 1, end = text.rfind('"');  // a template of the config gives way to files
  dir.write("model/chat_template.jinja", text.substr(at, end - at));
  const Ended run = toy::run(toy::train(dir, {"policy.model_name=" + (dir / "model").string()}));
  INFO(run.err);
  CHECK(run.code == 0);
  for (const std::string& name : names) {
    CAPTURE(name);
    for (const char* part : {"tokenizer", "weights"})
      CHECK(toy::read_text(dir / "checkpoints/step_2/policy" / part / name) == toy::read_text(dir / "model" / name));
  }
}

TEST_SUITE_END();
