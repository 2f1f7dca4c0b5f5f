#include "core/algorithm/grpo/phases.hpp"
#include "core/algorithm/reward/reward.hpp"
#include "lib/base/json.hpp"
#include "lib/text/tokenizer/step/token_texts.hpp"
#include "lib/zst/json_line.hpp"

namespace hexad::algorithm {
namespace {

using Json = nlohmann::ordered_json;

// Of a step: decoding all would cost more than the report can show. And rows of a table for trackers.
constexpr int64_t kSamplesWithTexts = 16, kTableRows = 16;
constexpr int64_t kBytesPerToken = 36;  // that wait: columns of 24, and texts
constexpr std::string_view kLogged[] = {"input_ids",  "token_mask",          "sample_mask",   "rewards", "truncated",
                                        "advantages", "generation_logprobs", "prev_logprobs", "invalid"};

// So many of `rows` at most: prompts from all over the batch, another place of the group each.
std::vector<int64_t> spread(int64_t rows, int64_t most) {
  const int64_t count = std::min(rows, most);
  std::vector<int64_t> chosen;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t first = k * rows / count;
    chosen.push_back(first + k % ((k + 1) * rows / count - first));
  }
  return chosen;
}

// What is logged of a step, as long as it waits for the thread that writes it: prompts may be gone by then.
struct Samples {
  rollout::Rollout rollout;  // its rows alone
  std::vector<std::string> prompts, expected;
  std::vector<float> valid;
  std::vector<bool> with_texts;
  std::vector<int64_t> lengths;  // of every response of the step, though few may be logged
  bool is_training, has_prev;
  std::shared_ptr<const text::Tokenizer> tokenizer;

  // Its numbers and texts, and the parts of its reward.
  Json head(int64_t i) const {
    Json head = {{"content", prompts[i] + rollout.responses[i]},
                 {"response", rollout.responses[i]},
                 {"expected_answer", expected[i]},
                 {"rewards", valid[i] != 0 ? Json(rollout.batch.row<float>("rewards", i)[0]) : Json()}};
    if (is_training) head["truncated"] = rollout.batch.row<uint8_t>("truncated", i)[0] != 0;
    head["input_lengths"] = rollout.batch.length(i);
    if (!is_training) return head;
    head["sample_loss_mask"] = rollout.batch.row<float>("sample_mask", i)[0];
    for (const auto& [name, values] : rollout.components) head["components"][name] = values[i];
    return head;
  }
  std::string line(int64_t i) const {
    Json whole = head(i);
    if (!is_training) return json_text(whole);
    const auto floats = [&](const char* column) { return rollout.batch.row<float>(column, i); };
    const auto ids = rollout.batch.row<int64_t>("input_ids", i);
    if (i == 0) whole["step_response_lengths"] = lengths;
    if (with_texts[i]) whole["tokens"] = text::token_texts(tokenizer, ids);
    return zst::json_line(whole,
                          {{"token_ids", ids},
                           {"token_loss_mask", floats("token_mask")},
                           {"advantages", floats("advantages")},
                           {"generation_logprobs", floats("generation_logprobs")},
                           {"prev_logprobs", has_prev ? zst::Numbers(floats("prev_logprobs")) : zst::Numbers()}});
  }
};

}  // namespace

void log_samples(const SampleLog& to, const rollout::Rollout& all, int64_t step, bool is_training) {
  const int64_t most = to.samples_per_step.value_or(all.batch.size());
  if (most == 0) return;
  const std::vector<int64_t> rows = spread(all.batch.size(), most);
  auto samples = std::make_shared<Samples>();
  samples->rollout = rows.size() == all.responses.size() ? all : all.select(rows);
  samples->is_training = is_training, samples->has_prev = to.has_prev;
  if (is_training) samples->lengths = response_lengths(all.batch);
  samples->valid = scored(samples->rollout.batch);
  samples->tokenizer = to.tokenizer;
  samples->with_texts.resize(rows.size());
  for (const int64_t row : spread(std::ssize(rows), kSamplesWithTexts)) samples->with_texts[row] = true;
  for (const data::SharedDatum& prompt : std::exchange(samples->rollout.prompts, {})) {
    samples->prompts.push_back(prompt->text);
    samples->expected.push_back(prompt->answer);
  }
  for (const auto& [name, column] : all.batch.columns())
    if (!std::ranges::count(kLogged, name)) samples->rollout.batch.erase(name);  // those of generators may be large
  std::vector<Json> table;
  for (int64_t i = 0; i < std::min(std::ssize(rows), kTableRows); ++i) table.push_back(samples->head(i));
  const auto line = [samples](int64_t i) { return samples->line(i); };
  const auto bytes = static_cast<size_t>(samples->rollout.batch.tokens() * kBytesPerToken);
  to.log.samples(is_training ? "train_data" : "val_data", step, {"", std::ssize(rows), line, bytes}, table);
}

}  // namespace hexad::algorithm
