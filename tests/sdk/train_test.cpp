// Plugins made from templates train: a loss author's whole run, without LibTorch and with it.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"
#include "tests/support/report.hpp"

using namespace sdk_test;
using plugin_test::Json;

namespace {

// The quickstart with the templates' own use.yaml files on top.
toy::Ended train(const TempDir& dir, const std::vector<std::string>& plugins, int steps) {
  std::string defaults = fs::absolute(toy::source_dir() / "configs/quickstart.yaml").string(), paths;
  for (const std::string& plugin : plugins) {
    defaults += fmt::format(", {}/use.yaml", plugin);
    paths += fmt::format("{}{}/build/lib/hexad/plugins", paths.empty() ? "" : ", ", (dir / plugin).string());
  }
  const std::string model = fs::absolute(toy::source_dir() / "configs/quickstart_model").string();
  const fs::path config = dir.write(
      "run.yaml", fmt::format("defaults: [{}]\nplugins: {{paths: [{}]}}\ngrpo: {{max_num_steps: {}}}\n"
                              "policy: {{model_name: {}}}\ncheckpointing: {{checkpoint_dir: {}/checkpoints}}\n"
                              "logger: {{log_dir: {}/logs}}\ncluster: {{device: cpu}}\n",
                              defaults, paths, steps, model, dir.path().string(), dir.path().string()));
  return toy::run({"train", config.string()}, "", /*timeout_s=*/120);
}

std::vector<Json> metrics(const TempDir& dir) {
  std::vector<Json> found;
  std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
  for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
  return found;
}

// The cache variable of the build that runs this test.
std::string cached(const std::string& name) {
  std::ifstream in(build_dir() + "/CMakeCache.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return line.substr(line.find('=') + 1);
  }
  return "";
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the table backend, its generator and a loss in C solve the quickstart without LibTorch") {
  const TempDir dir;
  build_template(dir, "backend", "my_backend");
  build_template(dir, "generator", "my_generator");
  build_template(dir, "loss_c", "my_loss");
  const toy::Ended run = train(dir, {"my_backend", "my_generator", "my_loss"}, 40);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto lines = metrics(dir);
  REQUIRE(!lines.empty());
  double accuracy = 0;
  for (const Json& line : lines) accuracy = line.value("validation/accuracy", accuracy);
  CHECK(accuracy > 0.9);
  CHECK(lines.back().contains("train/clip_frac"));
  CHECK(lines.back().contains("train/table_range"));
}

TEST_CASE("a reward of one's own, from its template") {
  const TempDir dir;
  for (const char* kind : {"backend", "generator", "environment"}) build_template(dir, kind, std::string("my_") + kind);
  const toy::Ended run = train(dir, {"my_backend", "my_generator", "my_environment"}, 3);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const Json last = metrics(dir).back();
  CHECK(last.at("train/reward") == 0);  // two letters hold no tags
  CHECK(last.at("train/tagged") == 0);
  CHECK(last.at("train/reward/format") == 0);
}

TEST_CASE("the three losses are one: the same run to the last bit in C and in C++") {
  const TempDir dir;
  build_template(dir, "backend", "my_backend");
  build_template(dir, "generator", "my_generator");
  std::vector<std::string> losses;
  for (const char* kind : {"loss_c", "loss_cpp"}) {
    build_template(dir, kind, kind);
    const toy::Ended run = train(dir, {"my_backend", "my_generator", kind}, 3);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    std::string text;
    for (const Json& line : metrics(dir)) {
      if (line.contains("train/loss")) text += line.at("train/loss").dump() + line.at("train/grad_norm").dump() + "\n";
    }
    losses.push_back(text);
    for (const char* folder : {"logs", "checkpoints"}) fs::remove_all(dir / folder);  // no resuming
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0].size() > 10);
}

TEST_CASE("the LibTorch backend trains with the same generator and loss") {
  const std::string torch = cached("HEXAD_TORCH_DIR");
  if (torch.empty()) return test_report::skipped("a build without LibTorch");
  const TempDir dir;
  build_template(dir, "backend_torch", "my_backend", "-DTORCH_DIR=" + torch);
  must(dir, "ctest --test-dir my_backend/build --output-on-failure");
  build_template(dir, "generator", "my_generator");
  build_template(dir, "loss_cpp", "my_loss");
  const toy::Ended run = train(dir, {"my_backend", "my_generator", "my_loss"}, 10);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(metrics(dir).back().contains("train/logit_range"));
}

TEST_SUITE_END();
