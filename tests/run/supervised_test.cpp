// SFT, DPO and reward-model training by the program, from the checkout's own configs: they learn, packing and ranks
// change nothing, a resumed run is the undisturbed one.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

struct Case {
  const char* algorithm;
  const char* validation;  // the metric that falls
};
const std::vector<Case> kCases = {
    {"sft", "validation/val_loss"}, {"dpo", "validation-default/loss"}, {"rm", "validation-default/loss"}};

// Paths in the configs are the checkout's.
Strings here(const std::string& algorithm) {
  Strings overrides = {"policy.model_name=" + source() + "/configs/quickstart_model", "++cluster.device=cpu"};
  if (algorithm == "sft") return overrides;
  const std::string data = source() + "/configs/quickstart_data/preferences";
  return both(overrides,
              {"data.train.data_path=" + data + ".jsonl", "data.validation.data_path=" + data + "_validation.jsonl"});
}

std::vector<Json> train(const std::string& algorithm, const TempDir& dir, const Strings& overrides,
                        const std::string& experiment = "exp_001") {
  const std::string config = fmt::format("{}/configs/{}_quickstart.yaml", source(), algorithm);
  const toy::Ended run = toy::run(first_party::train(config, dir, both(here(algorithm), overrides)), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.find("generator") == std::string::npos);  // none is started
  return first_party::lines_of(dir / "logs" / experiment / "metrics.jsonl");
}

std::vector<double> values(const std::vector<Json>& lines, const std::string& metric) {
  std::vector<double> found;
  for (const Json& line : lines)
    if (line.contains(metric)) found.push_back(line.at(metric));
  return found;
}

Strings few_steps(const std::string& algorithm, int steps) {
  return {fmt::format("{}.max_num_steps={}", algorithm, steps), algorithm + ".val_period=2",
          algorithm + ".val_at_start=false", algorithm + ".val_at_end=false", "checkpointing.enabled=false"};
}

// Two ranks that share every weight: megatron's for the reward model, dtensor's for the others.
Strings by_tensor(const std::string& algorithm) {
  if (algorithm != "rm") return {"cluster.gpus_per_node=2", "++policy.dtensor_cfg.tensor_parallel_size=2"};
  return {"cluster.gpus_per_node=2", "++policy.megatron_cfg.enabled=true",
          "++policy.megatron_cfg.tensor_model_parallel_size=2", "++policy.megatron_cfg.sequence_parallel=true",
          "++policy.make_sequence_length_divisible_by=2"};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("sft teaches the answers, and its checkpoint gives them") {
  const TempDir dir;
  const auto lines = train("sft", dir, {});
  const auto validation = values(lines, "validation/val_loss");
  REQUIRE(validation.size() == 4);
  CHECK(validation.front() > 2);
  CHECK(validation.back() < 0.05);
  CHECK(values(lines, "train/loss").back() < 0.05);
  CHECK(toy::read_text(dir / "logs/exp_001/report.html").find("</html>") != std::string::npos);
  const std::string model = (dir / "model").string();
  REQUIRE(toy::run({"convert", (dir / "checkpoints/step_60").string(), model}).code == 0);
  const toy::Ended answer = toy::run({"generate", model, "--prompt", "fade", "--greedy", "policy.precision=float32",
                                      "policy.generation.max_new_tokens=2"});
  INFO(answer.err);
  CHECK(answer.out == "f\n");
  // The folder of the weights is a model as it is, and to talk to.
  const std::string weights = (dir / "checkpoints/step_60/policy/weights").string();
  const toy::Ended talk = toy::run(
      {"chat", weights, "--greedy", "policy.precision=float32", "policy.generation.max_new_tokens=2"}, "fade\ncab\n");
  INFO(talk.err);
  CHECK(talk.code == 0);
  CHECK(talk.out.starts_with("f\n"));
}

TEST_CASE("dpo begins at ln 2 and comes to prefer the right answers of questions that it never saw") {
  const TempDir dir;
  const auto lines = train("dpo", dir, {});
  CHECK(values(lines, "train/preference_loss").front() == doctest::Approx(std::log(2.0)));
  const auto loss = values(lines, "validation-default/loss");
  CHECK(loss.front() == doctest::Approx(std::log(2.0)));
  CHECK(loss.back() < 0.5);
  CHECK(values(lines, "validation-default/accuracy").back() > 0.9);
  CHECK(values(lines, "validation-default/rewards_chosen_mean").back() >
        values(lines, "validation-default/rewards_rejected_mean").back());
}

TEST_CASE("rm learns to score the right answers higher, of questions that it never saw") {
  const TempDir dir;
  const auto lines = train("rm", dir, {});
  const auto loss = values(lines, "validation-default/loss");
  CHECK(loss.back() < 0.5 * loss.front());
  CHECK(values(lines, "validation-default/accuracy").back() > 0.9);
  const Json config = Json::parse(toy::read_text(dir / "checkpoints/step_80/policy/weights/config.json"));
  CHECK(config.at("architectures") == Json::array({"LlamaForSequenceClassification"}));
}

TEST_CASE("packed, padded, one by one and on two ranks, training is the same") {
  for (const auto& [algorithm, validation] : kCases) {
    CAPTURE(algorithm);
    const TempDir first;
    const auto packed = train(algorithm, first, few_steps(algorithm, 4));
    for (const Strings& layout : {Strings{"policy.sequence_packing.enabled=false"},
                                  Strings{"policy.sequence_packing.enabled=false", "policy.train_micro_batch_size=1"},
                                  Strings{"cluster.gpus_per_node=2"}, by_tensor(algorithm)}) {
      const TempDir dir;
      const auto other = train(algorithm, dir, both(few_steps(algorithm, 4), layout));
      for (const std::string& metric :
           {std::string("train/loss"), std::string("train/grad_norm"), std::string(validation)}) {
        CAPTURE(metric);
        const auto wanted = values(packed, metric), got = values(other, metric);
        REQUIRE(got.size() == wanted.size());
        REQUIRE(!got.empty());
        // Adam amplifies the order of sums: gradients of later steps are of weights that differ a little.
        const bool amplified = metric == "train/grad_norm";
        for (size_t i = 0; i < got.size(); ++i)
          CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(amplified && i > 0 ? 1e-3 : 1e-5));
      }
    }
  }
}

TEST_CASE("in deterministic mode a resumed run ends as the undisturbed one, bit for bit") {
  for (const auto& [algorithm, validation] : kCases) {
    CAPTURE(algorithm);
    const std::string name = algorithm;
    const Strings settings = {"++policy.deterministic=true", "checkpointing.save_period=2", name + ".val_period=2",
                              name + ".val_at_start=false", name + ".val_at_end=false"};
    const auto steps = [&](int count) { return both(settings, {fmt::format("{}.max_num_steps={}", name, count)}); };
    const TempDir whole, parts;
    const auto wanted = train(name, whole, steps(4));
    train(name, parts, steps(2));
    const auto got = train(name, parts, steps(4), "exp_002");
    for (const std::string& metric :
         {std::string("train/loss"), std::string("train/grad_norm"), std::string(validation)}) {
      CAPTURE(metric);
      const auto all = values(wanted, metric), rest = values(got, metric);
      REQUIRE(rest.size() * 2 == all.size());
      for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i] == all[i + rest.size()]);
    }
    const std::string weights = "checkpoints/step_4/policy/weights/model.safetensors";
    CHECK(toy::read_text(parts / weights) == toy::read_text(whole / weights));
    CHECK(!toy::read_text(whole / weights).empty());
  }
}

TEST_CASE("what a supervised run refuses, it refuses before it trains, with the place") {
  const TempDir dir;
  const auto error_of = [&](const std::string& algorithm, const Strings& overrides) {
    const std::string config = fmt::format("{}/configs/{}_quickstart.yaml", source(), algorithm);
    const toy::Ended run = toy::run(first_party::train(config, dir, both(here(algorithm), overrides)));
    CHECK(run.code != 0);
    return run.err;
  };
  CHECK(error_of("sft", {"++dpo={max_num_steps: 1}"}).find("dpo: sft is there too") != std::string::npos);
  CHECK(error_of("dpo", {"policy.sequence_packing.train_mb_tokens=8"})
            .find("2 sequences that stay in one micro-batch (a preference) have") != std::string::npos);
  const auto tie = dir.write("tie.jsonl", R"({"context": [{"role": "user", "content": "a"}], "completions": [)"
                                          R"({"rank": 0, "completion": [{"role": "assistant", "content": "b"}]}, )"
                                          R"({"rank": 0, "completion": [{"role": "assistant", "content": "c"}]}]})"
                                          "\n");
  CHECK(error_of("dpo", {"data.train.dataset_name=PreferenceDataset", "data.train.data_path=" + tie.string()})
            .find("tie.jsonl:1: both completions have rank 0") != std::string::npos);
}

TEST_SUITE_END();
