// SFT and DPO as loops: what they validate, save, log and refuse. Whole runs in this process on the toy backend with
// the first-party losses.
#include "core/algorithm/supervised/supervised.hpp"
#include "core/algorithm/run/loop.hpp"

#include <cmath>

#include "core/algorithm/run/train_run.hpp"
#include "tests/support/toy/supervised.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Steps = std::vector<int64_t>;

struct Trained {
  explicit Trained(const std::string& algorithm, const Strings& overrides = {}) { go(algorithm, overrides); }
  void go(const std::string& algorithm, const Strings& overrides) {
    const config::Resolved resolved =
        config::resolve(dir.write("run.yaml", toy::supervised_config_text(algorithm, dir)), overrides);
    const auto report = [](const fs::path& run_dir) { std::ofstream(run_dir / "report.html") << "a page"; };
    outcome = algorithm::train(resolved, {.report = report}, interruption);
    steps.clear();
    std::ifstream in(fs::path(outcome.run_dir) / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) steps.push_back(Json::parse(line));
  }
  Steps steps_with(const std::string& metric) const {
    Steps found;
    for (const Json& step : steps)
      if (step.contains(metric)) found.push_back(step.at("step"));
    return found;
  }
  std::vector<double> values(const std::string& metric) const {
    std::vector<double> found;
    for (const Json& step : steps)
      if (step.contains(metric)) found.push_back(step.at(metric));
    return found;
  }

  toy::TempDir dir;
  algorithm::Interruption interruption;
  algorithm::TrainOutcome outcome;
  std::vector<Json> steps;
};

Strings with(Strings list, const Strings& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

const Strings kPacked = {"++policy.sequence_packing.enabled=true", "++policy.sequence_packing.train_mb_tokens=32",
                         "++policy.sequence_packing.logprob_mb_tokens=32"};

}  // namespace

TEST_CASE("sft: the loss falls on what it trains and on validation, from that of a uniform model") {
  const Trained run("sft", {"sft.max_num_steps=40", "sft.val_at_start=true", "++sft.val_at_end=true"});
  CHECK(run.outcome.steps == 40);
  CHECK(run.steps_with("validation/val_loss") == Steps{0, 40});
  const auto validation = run.values("validation/val_loss"), loss = run.values("train/loss");
  CHECK(validation.front() == doctest::Approx(std::log(12.0)));  // of twelve tokens
  CHECK(loss.front() == doctest::Approx(std::log(12.0)));
  CHECK(validation.back() < 0.5 * validation.front());
  CHECK(loss.back() < 0.5 * loss.front());
  CHECK(run.steps.back().at("train/num_unmasked_tokens") == 16);  // eight answers of a letter and the end
  for (const char* metric :
       {"train/grad_norm", "train/lr", "train/global_valid_seqs", "train/global_valid_toks", "train/total_num_tokens",
        "timing/train/policy_training", "timing/train/data_processing", "performance/policy_training_tokens_per_sec"})
    CHECK_MESSAGE(run.steps.back().contains(metric), metric);
}

TEST_CASE("sft: validation by its period, and as many batches as are asked for") {
  CHECK(Trained("sft", {"sft.val_period=2"}).steps_with("validation/val_loss") == Steps{2, 4, 6});
  CHECK(Trained("sft", {"sft.val_period=-1"}).steps_with("validation/val_loss").empty());
  // The order of the data is fixed: other batches are other losses, of a model that is no longer uniform.
  const auto losses = [](const std::string& batches) {
    return Trained("sft", {"sft.max_num_steps=3", "sft.val_period=3", "sft.val_batches=" + batches})
        .values("validation/val_loss");
  };
  CHECK(losses("1") != losses("-1"));
  CHECK(losses("12") == losses("-1"));
}

TEST_CASE("validation counts every example once, and every trained token alike, whatever the batches") {
  // Answers of one to five letters: a mean of the batches' means is another number.
  const auto uneven = [](const std::string& algorithm) {
    std::string rows;
    for (int i = 0; i < 10; ++i) {
      const std::string question(1, static_cast<char>('a' + i % 8)), answer(static_cast<size_t>(1 + i % 5), 'b');
      rows += algorithm == "sft" ? Json{{"input", question}, {"output", answer}}.dump() + "\n"
                                 : Json{{"prompt", question}, {"chosen", answer}, {"rejected", "cc"}}.dump() + "\n";
    }
    return rows;
  };
  for (const auto& [algorithm, name] :
       {std::pair<std::string, std::string>("sft", "validation/val_loss"), {"dpo", "validation-default/loss"}}) {
    const auto loss = [&, &algorithm = algorithm, &name = name](const std::string& batch, const std::string& batches) {
      const toy::TempDir rows;
      return Trained(algorithm, {algorithm + ".max_num_steps=2", algorithm + ".val_period=2",
                                 algorithm + ".val_global_batch_size=" + batch, algorithm + ".val_batches=" + batches,
                                 "data.validation.data_path=" + rows.write("v.jsonl", uneven(algorithm)).string()})
          .values(name)
          .at(0);
    };
    const double whole = loss("16", "-1");
    for (const char* batch : {"10", "4", "3", "1"}) CHECK(loss(batch, "-1") == doctest::Approx(whole).epsilon(1e-6));
    CHECK(loss("4", "3") == doctest::Approx(whole).epsilon(1e-6));  // the third has two
    CHECK(loss("4", "2") != doctest::Approx(whole).epsilon(3e-6));
  }
}

TEST_CASE("sft: packed, padded and one by one train alike") {
  const auto loss_of = [](const Strings& layout) { return Trained("sft", with({"sft.val_period=3"}, layout)); };
  const Trained plain = loss_of({});
  for (const Strings& layout :
       {kPacked, Strings{"policy.train_micro_batch_size=1"},
        Strings{"++policy.dynamic_batching.enabled=true", "++policy.dynamic_batching.sequence_length_round=4",
                "++policy.dynamic_batching.train_mb_tokens=32", "++policy.dynamic_batching.logprob_mb_tokens=32"}}) {
    const Trained other = loss_of(layout);
    for (const char* metric : {"train/loss", "train/grad_norm", "validation/val_loss"}) {
      const auto wanted = plain.values(metric), got = other.values(metric);
      REQUIRE(got.size() == wanted.size());
      for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("sft: a resumed run ends as the undisturbed one") {
  const Trained whole("sft");
  Trained parts("sft", {"sft.max_num_steps=2"});
  CHECK(fs::exists(parts.dir / "checkpoints/step_2/policy/weights"));
  parts.go("sft", {});
  CHECK(parts.outcome.steps == 6);
  CHECK(parts.steps_with("train/loss") == Steps{3, 4, 5, 6});
  const auto wanted = whole.values("train/loss"), got = parts.values("train/loss");
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == wanted[i + 2]);  // bit for bit
}

TEST_CASE("sft: other data or another seed of the weights is another run, another rate the same one with a line") {
  Trained run("sft", {"sft.max_num_steps=2"});
  const auto error = [&](const std::function<void()>& change, const Strings& overrides) {
    change();
    return error_of([&] { algorithm::train(config::resolve(run.dir / "run.yaml", overrides), {}, run.interruption); });
  };
  CHECK(error([] {}, {"policy.optimizer.kwargs.lr=0.5"}) == "(no error)");
  CHECK(contains(error([] {}, {"++policy.random_init_seed=9"}), "model.random_init_seed: saved null, now 9"));
  const auto other_answer = [&] {
    std::string text = plugin_test::read_text(run.dir / "data.jsonl");
    text[text.find("\"output\":\"") + 10] = 'h';
    run.dir.write("data.jsonl", text);
  };
  CHECK(contains(error(other_answer, {}), "data_contents: saved \""));
}

TEST_CASE("sft: examples that do not fit are told of, and a run of none is an error") {
  CHECK(contains(error_of([] { Trained("sft", {"data.max_input_seq_length=3"}); }),
                 "data.max_input_seq_length: not one of the 48 conversations fits into 3 tokens"));
  CHECK(contains(error_of([] { Trained("dpo", {"data.max_input_seq_length=3"}); }), "not one of the 48 pairs fits"));
}

TEST_CASE("sft: conversations in which the assistant says nothing are told of, and a run of them is an error") {
  const auto without_answers = [](const std::string& rows) {
    const toy::TempDir dir;
    Trained("sft", {"data.train={dataset_name: openai_format, data_path: " + dir.write("q.jsonl", rows).string() + "}",
                    "policy.train_global_batch_size=1", "policy.train_micro_batch_size=1", "sft.max_num_steps=1"});
  };
  const std::string question = R"({"messages": [{"role": "user", "content": "a"}]})"
                               "\n",
                    answered =
                        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})"
                        "\n";
  CHECK(contains(error_of([&] { without_answers(question + question); }),
                 "not one of the 2 conversations has a token to train on: the assistant says nothing in them"));
  CHECK(error_of([&] { without_answers(question + answered); }) == "(no error)");
}

TEST_CASE("rows of large data are read when they are drawn: what is too long is counted in its step") {
  for (const std::string algorithm : {"sft", "dpo"}) {
    CAPTURE(algorithm);
    const toy::TempDir dir;
    const auto row = [&](const std::string& asked) {
      return algorithm == "sft" ? Json{{"prompt", asked}, {"completion", "b"}}.dump() + "\n"
                                : Json{{"prompt", asked}, {"chosen", "b"}, {"rejected", "c"}}.dump() + "\n";
    };
    std::string rows;
    for (int64_t i = 0; i < data::kLookedAt + 1000; ++i)
      rows += row(i == 4200 || i == 4300 || i == 4900 ? std::string(20, 'a') : "a");
    const std::string file = dir.write("large.jsonl", rows).string();
    const Trained run(algorithm, {"data.train={dataset_name: large, data_path: " + file + "}", "data.shuffle=false",
                                  "policy.train_global_batch_size=600", "policy.train_micro_batch_size=300",
                                  algorithm + ".max_num_steps=8", "policy.tokenizer.chat_template=null"});
    CHECK(run.outcome.steps == 8);
    CHECK(run.steps_with("train/num_too_long") == Steps{8});  // rows 4,200 to 4,799
    CHECK(run.values("train/num_too_long") == std::vector<double>{2});
    CHECK(run.steps.at(6).at("train/global_valid_seqs") == (algorithm == "sft" ? 600 : 1200));
    CHECK(run.steps.at(7).at("train/global_valid_seqs") == (algorithm == "sft" ? 598 : 1196));
  }
}

TEST_CASE("validation is not in memory as a whole: a batch is made when it is asked for") {
  const toy::TempDir dir;
  std::string rows;
  for (int64_t i = 0; i < data::kLookedAt + 8; ++i) rows += Json{{"prompt", "a"}, {"completion", "b"}}.dump() + "\n";
  const std::string file = dir.write("large.jsonl", rows + "{oops\n").string();
  const config::Resolved resolved = config::resolve(dir.write("run.yaml", toy::supervised_config_text("sft", dir)),
                                                    {"data.validation={dataset_name: large, data_path: " + file + "}"});
  const config::RunConfig run = config::run_config(resolved);
  const rollout::ModelText text = rollout::load_model_text(run.policy.model_name, run.policy.tokenizer);
  const algorithm::Examples examples(run, text);
  const auto batches = examples.validation();  // of 4
  REQUIRE(batches.size() == data::kLookedAt / 4 + 3);
  CHECK(batches[0].size() == 4);
  CHECK(batches[batches.size() - 2].size() == 4);
  CHECK(contains(error_of([&] { batches[batches.size() - 1]; }), "large.jsonl:4105: malformed JSON"));
}

TEST_CASE("sft: epochs end, and another algorithm's checkpoint is refused") {
  CHECK(Trained("sft", {"sft.max_num_epochs=1", "sft.max_num_steps=-1"}).outcome.steps == 6);  // 48 of 8 a step

  Trained run("sft", {"sft.max_num_steps=2"});
  CHECK(contains(error_of([&] { run.go("dpo", {}); }), "algorithm"));
}

TEST_CASE("dpo: starts at ln 2 with the reference's rewards, and comes to prefer the chosen answers") {
  const Trained run("dpo", {"dpo.max_num_steps=30", "++dpo.reference_policy_kl_penalty=0.5", "dpo.val_at_start=true",
                            "++dpo.val_at_end=true"});
  CHECK(run.values("train/preference_loss").front() == doctest::Approx(std::log(2.0)));
  CHECK(run.values("train/loss").front() == doctest::Approx(std::log(2.0)));
  CHECK(run.values("train/accuracy").front() == 0);  // ties
  CHECK(run.values("train/preference_loss").back() < 0.5);
  CHECK(run.values("train/accuracy").back() == doctest::Approx(1));
  CHECK(run.values("train/rewards_chosen_mean").back() > run.values("train/rewards_rejected_mean").back());
  CHECK(run.values("train/num_valid_samples").back() == 8);
  CHECK(run.values("train/global_valid_seqs").back() == 16);
  CHECK(run.values("validation-default/loss").front() == doctest::Approx(std::log(2.0)));
  CHECK(run.values("validation-default/accuracy").back() > 0.9);
  CHECK(run.values("validation-default/num_valid_samples").back() == 48);
}

TEST_CASE("dpo: packed pairs train as padded ones, and a resumed run keeps the first reference") {
  const Trained plain("dpo"), packed("dpo", kPacked);
  for (const char* metric : {"train/loss", "train/grad_norm", "train/accuracy"}) {
    const auto wanted = plain.values(metric), got = packed.values(metric);
    REQUIRE(got.size() == 6);
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
  }
  Trained parts("dpo", {"dpo.max_num_steps=2"});
  parts.go("dpo", {});
  const auto wanted = plain.values("train/loss"), got = parts.values("train/loss");
  REQUIRE(got.size() == 4);
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == wanted[i + 2]);
}

TEST_CASE("dpo: the reference is the model that the run began with, weights of the loss are the config's") {
  const Trained sft("dpo", {"++dpo.sft_loss_weight=1.0", "dpo.max_num_steps=1"});
  CHECK(sft.values("train/sft_loss").front() == doctest::Approx(2 * std::log(12.0)));  // a letter and the end
  CHECK(sft.values("train/loss").front() == doctest::Approx(2 * std::log(12.0) + std::log(2.0)));
  const Trained averaged(
      "dpo", {"++dpo.sft_loss_weight=1.0", "++dpo.preference_average_log_probs=true", "dpo.max_num_steps=1"});
  CHECK(averaged.values("train/sft_loss").front() == doctest::Approx(std::log(12.0)));
}

TEST_CASE("rm: a backend without a reward head is refused before anything trains") {
  const std::string error = error_of([&] { Trained("rm"); });
  CHECK_MESSAGE(contains(error, "differentiates 'sequence_scores', which"), error);
  CHECK_MESSAGE(contains(error, "Choose another policy.backend or loss_fn.plugin"), error);
}

TEST_CASE("examples that do not fill a step, and answers without a worse one, are refused") {
  const std::string few = error_of([&] { Trained("sft", {"policy.train_global_batch_size=64"}); });
  CHECK_MESSAGE(contains(few,
                         "48 records, fewer than the 64 conversations of a step; lower "
                         "policy.train_global_batch_size"),
                few);
  const std::string one =
      error_of([&] { Trained("dpo", {"data.train={dataset_name: puzzle, kind: successor, size: 64}"}); });
  CHECK_MESSAGE(contains(one, "one answer and no worse one; preferences come from"), one);
}

TEST_CASE("a period's turn comes at its multiples, that of a period below 1 never") {
  CHECK(algorithm::due(4, 2));
  CHECK_FALSE(algorithm::due(5, 2));
  CHECK_FALSE(algorithm::due(5, 0));
  CHECK_FALSE(algorithm::due(5, -1));
}
