// Configurations that are wrong in one thing (mutants.yaml): `config check` and `train` refuse each with the
// same text and exit code, and nothing is left behind.
#include <doctest/doctest.h>

#include "app/doctor/build.hpp"
#include "lib/model/family/weight_table.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "lib/yaml/file.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/program.hpp"
#include "tests/support/toy/supervised.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

Arguments texts_of(const Json& list) { return list.is_null() ? Arguments() : list.get<Arguments>(); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// [line, times, last]
std::string rows_text(const Json& rows) {
  std::string text;
  for (int i = 0; i < rows.at(1).get<int>(); ++i) text += rows.at(0).get<std::string>() + "\n";
  return text + rows.at(2).get<std::string>() + "\n";
}

const std::vector<std::string> kBases = {"toy", "toy_sft", "toy_dpo", "quickstart"};

// A base in a folder of its own.
struct Base {
  TempDir dir;
  std::string config;
  Arguments overrides;

  explicit Base(const std::string& name) {
    if (name == "quickstart") {
      config = (toy::source_dir() / "configs/quickstart.yaml").string();
      overrides = {"policy.model_name=" + fs() + "/configs/quickstart_model",
                   "logger.log_dir=" + file("logs"),
                   "checkpointing.checkpoint_dir=" + file("checkpoints"),
                   "grpo.max_num_steps=1",
                   "grpo.val_at_start=false",
                   "grpo.val_at_end=false",
                   "grpo.num_prompts_per_step=8",
                   "checkpointing.metric_name=null"};
      return;
    }
    const std::string text =
        name == "toy" ? toy::config_text(dir.path()) : toy::supervised_config_text(name.substr(4), dir);
    config = dir.write("base.yaml", text).string();
    overrides = {(name == "toy" ? "grpo" : name.substr(4)) + ".max_num_steps=1"};
  }
  static std::string fs() { return toy::fs::absolute(toy::source_dir()).string(); }
  std::string file(const std::string& name) const { return (dir / name).string(); }
  std::string filled(const std::string& text) const {
    return replaced(replaced(text, "{dir}", dir.path().string()), "{64a}", std::string(64, 'a'));
  }

  // The quickstart's model with other values in its config.json.
  void make_model(const Json& values) {
    toy::fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "model", toy::fs::copy_options::recursive);
    toy::fs::permissions(dir / "model/config.json", toy::fs::perms::owner_write, toy::fs::perm_options::add);
    Json config = Json::parse(toy::read_text(dir / "model/config.json"));
    config.merge_patch(values);
    dir.write("model/config.json", config.dump());
    overrides.push_back("policy.model_name=" + file("model"));
  }
  // In make_model()'s folder: zeros in the place of what a config.json with other values asks for.
  void make_weights(const Json& values) {
    namespace model = hexad::model;
    nlohmann::json json = nlohmann::json::parse(toy::read_text(dir / "model/config.json"));
    json.merge_patch(nlohmann::json(values));
    std::vector<hexad::tensorfile::TensorSpec> specs;
    for (const model::WeightInfo& info : model::weight_table(model::parse_model_config(json, "config.json")))
      specs.push_back({info.hf_name, hexad::tensorfile::DType::bf16, info.shape});
    hexad::tensorfile::SafetensorsWriter writer(dir / "model/model.safetensors", specs);
    for (const auto& spec : specs) writer.write(spec.name, std::vector<std::byte>(spec.bytes()));
    writer.finish();
  }
  void apply(const Json& mutant) {
    if (mutant.contains("model")) make_model(mutant.at("model"));
    if (mutant.contains("weights")) make_weights(mutant.at("weights"));
    if (mutant.contains("files"))
      for (const auto& [name, text] : mutant.at("files").items()) dir.write(name, filled(text.get<std::string>()));
    if (mutant.contains("rows"))
      for (const auto& [name, rows] : mutant.at("rows").items()) dir.write(name, rows_text(rows));
    for (const std::string& each : texts_of(mutant.value("set", Json()))) overrides.push_back(filled(each));
  }
  Ended run(Arguments command) const {
    command.push_back(config);
    command.insert(command.end(), overrides.begin(), overrides.end());
    return toy::run(command);
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> found;
    for (const auto& entry : toy::fs::recursive_directory_iterator(dir.path())) found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
  }
};

// Lines of errors, without what begins those of a command and how deep they stand: "hexad: ", "error: ".
std::string errors_in(const std::string& said) {
  std::string errors;
  std::istringstream in(said);
  bool is_error = true;
  for (std::string line; std::getline(in, line);) {
    const bool is_new = !line.starts_with("  ");
    line.erase(0, line.find_first_not_of(' '));
    for (const std::string prefix : {"hexad: ", "error: "})
      if (line.starts_with(prefix)) line.erase(0, prefix.size());
    if (is_new) is_error = !contains(line, "notice: ") && !contains(line, ": not valid, ");
    if (is_error) errors += line + "\n";
  }
  return errors;
}

void check_mutant(const Json& mutant) {
  Base base(mutant.at("base").get<std::string>());
  if (mutant.value("trained", false)) REQUIRE(base.run({"train"}).code == 0);
  base.apply(mutant);
  const std::vector<std::string> before = base.entries();
  const bool here = mutant.value("here", false);
  const Ended check = base.run(here ? Arguments{"config", "check", "--here"} : Arguments{"config", "check"});
  CHECK_MESSAGE(check.code == mutant.value("code", 2), check.out << check.err);
  CHECK(before == base.entries());
  const Ended train = base.run({"train"});
  CHECK_MESSAGE(train.code == check.code, train.err);
  CHECK(before == base.entries());
  CHECK(errors_in(check.out) == errors_in(train.err));
  CHECK_MESSAGE(contains(check.out, mutant.at("says").get<std::string>()), check.out);
  // What may be on another machine is told there with the same text.
  if (here) {
    const Ended elsewhere = base.run({"config", "check"});
    CHECK(contains(elsewhere.out, mutant.at("says").get<std::string>()));
    CHECK(elsewhere.code == 0);
  }
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // check libraries must answer in time

TEST_CASE("config check and train refuse the same configurations with the same text") {
  const Json mutants =
      hexad::yaml::read_file(toy::source_dir() / "tests/app/mutants/mutants.yaml").to_json().at("mutants");
  CHECK(mutants.size() >= 100);
  const hexad::doctor::Build build = hexad::doctor::this_build("");
  for (const Json& mutant : mutants) {
    INFO(mutant.at("check"));
    if (mutant.contains("build") && !build.cuda.empty()) continue;
    if (mutant.at("base") == "quickstart" && build.libtorch.empty()) continue;
    check_mutant(mutant);
  }
}

TEST_CASE("what the mutants are made of is valid, and trains") {
  for (const std::string& name : kBases) {
    INFO(name);
    if (name == "quickstart" && hexad::doctor::this_build("").libtorch.empty()) {
      test_report::skipped("without LibTorch there is no base 'quickstart', and none of its mutants");
      continue;
    }
    const Base base(name);
    const Ended check = base.run({"config", "check", "--here"}), train = base.run({"train"});
    CHECK_MESSAGE(check.code == 0, check.out);
    CHECK_MESSAGE(train.code == 0, train.err);
  }
}

TEST_SUITE_END();
