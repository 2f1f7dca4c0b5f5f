// The quickstart through the ordinary plugins: it learns what training never saw, and nothing when rewards mean
// nothing.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

using first_party::source;
using toy::TempDir;

namespace {

using Json = nlohmann::json;

std::vector<Json> metrics(const TempDir& dir) {
  std::vector<Json> found;
  std::ifstream in(dir / "logs/exp_001/metrics.jsonl");
  for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
  return found;
}

std::vector<double> validations(const std::vector<Json>& lines) {
  std::vector<double> found;
  for (const Json& line : lines) {
    if (line.contains("validation/accuracy")) found.push_back(line.at("validation/accuracy"));
  }
  return found;
}

toy::Ended train(const std::string& config, const TempDir& dir, const std::vector<std::string>& overrides = {}) {
  return toy::run(first_party::train(config, dir, overrides), "", /*timeout_s=*/600);
}

// Four-letter prompts, none twice; `answer` gives each its answer. Returns JSON lines.
template <typename Answer>
std::string questions(int first, int count, const Answer& answer) {
  std::string lines;
  for (int i = first; i < first + count; ++i) {
    const int code = i * 2531 % 4096;  // 2531 is odd: every code once
    std::string text;
    for (int k = 0; k < 4; ++k) text += static_cast<char>('a' + (code >> (3 * k)) % 8);
    lines += Json{{"input", text}, {"output", std::string(1, answer(text, i))}}.dump() + "\n";
  }
  return lines;
}

char successor(const std::string& text, int) { return static_cast<char>('a' + (text.back() - 'a' + 1) % 8); }

// The answer of another question: every letter as often as before, and nothing to learn.
char shuffled(const std::string&, int i) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  return static_cast<char>('a' + (x >> 40) % 8);
}

std::string dataset(const toy::fs::path& path) {
  return fmt::format(
      "{{dataset_name: ResponseDataset, data_path: {}, input_key: input, output_key: output, "
      "env_name: exact_answer, processor: math_hf_data_processor}}",
      path.string());
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("quickstart goes from under 0.2 to 0.9 on prompts that training never saw, and leaves a report") {
  const TempDir dir;
  const toy::Ended run = train(source() + "/configs/quickstart.yaml", dir);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto seen = validations(metrics(dir));
  REQUIRE(seen.size() >= 2);
  CHECK(seen.front() < 0.2);
  CHECK(seen.back() >= 0.9);
  const std::string report = toy::read_text(dir / "logs/exp_001/report.html");
  CHECK(report.find("</html>") != std::string::npos);
  CHECK(report.find("src=\"http") == std::string::npos);

  // The checkpoint is a model: converted, it answers the puzzle.
  const std::string model = (dir / "model").string();
  REQUIRE(toy::run({"convert", (dir / "checkpoints/step_80").string(), model}).code == 0);
  const toy::Ended answer = toy::run({"generate", model, "--prompt", "fade", "--greedy", "policy.precision=float32",
                                      "policy.generation.max_new_tokens=2"});
  INFO(answer.err);
  CHECK(answer.out == "f\n");
}

TEST_CASE("control: with shuffled rewards the same run stays flat") {
  const TempDir dir;
  const auto config = dir.write(
      "control.yaml", fmt::format("defaults: {}/configs/quickstart.yaml\ndata:\n  _override_: true\n  "
                                  "max_input_seq_length: 14\n  shuffle: true\n  train: {}\n  validation: {}\n",
                                  source(), dataset(dir.write("train.jsonl", questions(0, 2048, shuffled))),
                                  dataset(dir.write("validation.jsonl", questions(2048, 128, successor)))));
  const toy::Ended run = train(
      config.string(), dir, {"grpo.max_num_steps=40", "policy.model_name=" + source() + "/configs/quickstart_model"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto seen = validations(metrics(dir));
  REQUIRE(seen.size() >= 2);
  for (const double accuracy : seen) CHECK(accuracy <= 0.3);  // 0.3: what the best constant answer may earn
}

TEST_CASE("the same file with the true answers learns: the control can fail") {
  const TempDir dir;
  const auto config =
      dir.write("true.yaml", fmt::format("defaults: {}/configs/quickstart.yaml\ndata:\n  _override_: true\n  "
                                         "max_input_seq_length: 14\n  shuffle: true\n  train: {}\n  validation: {}\n",
                                         source(), dataset(dir.write("train.jsonl", questions(0, 2048, successor))),
                                         dataset(dir.write("validation.jsonl", questions(2048, 128, successor)))));
  const toy::Ended run = train(
      config.string(), dir, {"grpo.max_num_steps=40", "policy.model_name=" + source() + "/configs/quickstart_model"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(validations(metrics(dir)).back() > 0.5);
}

TEST_CASE("logger.profile_steps traces the steps that it names, and no other") {
  const TempDir dir;
  const toy::Ended run = train(source() + "/configs/quickstart.yaml", dir,
                               {"grpo.max_num_steps=2", "logger.profile_steps=[2]", "grpo.val_at_start=false"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK((run.out + run.err).find("step 2: traced into") != std::string::npos);
  CHECK(!toy::fs::exists(dir / "logs/exp_001/profile-step1-rank0.json"));
  const Json trace = Json::parse(toy::read_text(dir / "logs/exp_001/profile-step2-rank0.json"));
  const Json& events = trace.at("traceEvents");
  const auto is_operator = [](const Json& event) { return event.value("name", "").starts_with("aten::"); };
  CHECK(std::any_of(events.begin(), events.end(), is_operator));
}

TEST_CASE("a generator that gives memory back while the policy computes draws the same samples") {
  std::vector<std::vector<double>> losses;
  for (const int level : {0, 1, 2}) {
    const TempDir dir;
    const toy::Ended run = train(source() + "/configs/quickstart.yaml", dir,
                                 {"grpo.max_num_steps=3", "++grpo.val_period=2", "++grpo.val_at_start=false",
                                  fmt::format("++policy.generation.colocated.sleep_level={}", level)});
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    std::vector<double>& of_run = losses.emplace_back();
    for (const Json& line : metrics(dir)) {
      for (const char* name : {"train/loss", "train/reward", "validation/accuracy"})
        if (line.contains(name)) of_run.push_back(line.at(name));
    }
  }
  CHECK(losses[0].size() >= 7);
  CHECK(losses[1] == losses[0]);
  CHECK(losses[2] == losses[0]);
}

TEST_SUITE_END();
