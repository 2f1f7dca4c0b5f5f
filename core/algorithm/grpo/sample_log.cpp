#include "core/algorithm/grpo/phases.hpp"

#include "core/algorithm/reward/reward.hpp"
#include "lib/text/tokenizer/step/stream_decoder.hpp"

namespace hexad::algorithm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSamplesWithTexts = 16;  // of a step: decoding all would cost more than the report can show

// Rows whose tokens are logged as text too: prompts from all over the batch, another place of the group each.
std::vector<bool> rows_with_texts(int64_t rows) {
  std::vector<bool> chosen(static_cast<size_t>(rows), rows <= kSamplesWithTexts);
  for (int64_t k = 0; k < kSamplesWithTexts && rows > 0; ++k)
    chosen[static_cast<size_t>((k * rows / kSamplesWithTexts + k) % rows)] = true;
  return chosen;
}

// Of every token what it adds to the text: together they are the text. A character of several tokens stands at its
// last.
std::vector<std::string> token_texts(const rollout::ModelText& text, std::span<const int64_t> ids) {
  text::StreamDecoder decoder(text.tokenizer, /*skip_special_tokens=*/false);
  std::vector<std::string> texts;
  for (const int64_t id : ids) texts.push_back(decoder.push_or_restart(static_cast<int32_t>(id)).value_or(""));
  return texts;
}

}  // namespace

void log_samples(const Grpo& run, const rollout::Rollout& rollout, int64_t step) {
  const data::Batch& batch = rollout.batch;
  const auto list = [](auto span) { return nlohmann::ordered_json(std::vector(span.begin(), span.end())); };
  const std::vector<bool> with_texts = rows_with_texts(batch.size());
  const std::vector<float> valid = scored(batch);
  const bool has_prev = needs_prev_logprobs(run.config, run.policy.loss_needs());  // else they are zeros
  std::vector<nlohmann::ordered_json> lines;
  for (int64_t i = 0; i < batch.size(); ++i) {
    lines.push_back({{"content", rollout.prompts[i]->text + rollout.responses[i]},
                     {"response", rollout.responses[i]},
                     {"expected_answer", rollout.prompts[i]->answer},
                     {"rewards", valid[i] != 0 ? Json(batch.row<float>("rewards", i)[0]) : Json()},
                     {"truncated", batch.row<uint8_t>("truncated", i)[0] != 0},
                     {"input_lengths", batch.length(i)},
                     {"token_ids", list(batch.row<int64_t>("input_ids", i))},
                     {"token_loss_mask", list(batch.row<float>("token_mask", i))},
                     {"sample_loss_mask", batch.row<float>("sample_mask", i)[0]},
                     {"advantages", list(batch.row<float>("advantages", i))},
                     {"generation_logprobs", list(batch.row<float>("generation_logprobs", i))},
                     {"prev_logprobs", has_prev ? list(batch.row<float>("prev_logprobs", i)) : Json()}});
    for (const auto& [name, values] : rollout.components) lines.back()["components"][name] = values[i];
    if (with_texts[static_cast<size_t>(i)])
      lines.back()["tokens"] = token_texts(run.text, batch.row<int64_t>("input_ids", i));
  }
  run.log.samples("train_data", step, lines);
}

void log_validation(const Grpo& run, const rollout::Rollout& rollout, int64_t step) {
  const data::Batch& batch = rollout.batch;
  const std::vector<float> valid = scored(batch);
  std::vector<Json> lines;
  for (int64_t i = 0; i < batch.size(); ++i) {
    lines.push_back({{"content", rollout.prompts[i]->text + rollout.responses[i]},
                     {"response", rollout.responses[i]},
                     {"expected_answer", rollout.prompts[i]->answer},
                     {"rewards", valid[i] != 0 ? Json(batch.row<float>("rewards", i)[0]) : Json()},
                     {"input_lengths", batch.length(i)}});
  }
  run.log.samples("val_data", step, lines);
}

}  // namespace hexad::algorithm
