#include "core/rollout/rollout.hpp"

#include "core/base/error.hpp"
#include "core/data/random.hpp"

namespace hexad::rollout {
namespace {

void check_imposed(const std::vector<int64_t>& lengths, size_t prompts, int64_t samples) {
  const size_t responses = prompts * static_cast<size_t>(samples);
  if (lengths.empty() || lengths.size() == responses) return;
  fail(ErrorKind::config,
       "policy.generation.imposed_lengths has {} lengths, and a rollout of {} prompts x {} has {} responses",
       lengths.size(), prompts, samples, responses);
}

// Prompt and completion of every sample as one sequence.
data::Batch join(const Drawn& drawn, int64_t samples, const std::vector<const data::Datum*>& prompts) {
  const data::Batch& completions = drawn.completions;
  const int64_t rows = completions.size();
  std::vector<int64_t> lengths(rows), prompt_lengths(rows), ids;
  std::vector<float> token_mask, logprobs, sample_mask(rows);
  std::vector<uint8_t> truncated(rows);
  for (int64_t i = 0; i < rows; ++i) {
    const std::vector<int32_t>& prompt = drawn.prompts[i / samples];
    const auto tokens = completions.row<int32_t>("tokens", i);
    const auto drawn_logprobs = completions.row<float>("logprobs", i);
    lengths[i] = static_cast<int64_t>(prompt.size() + tokens.size());
    prompt_lengths[i] = static_cast<int64_t>(prompt.size());
    sample_mask[i] = prompts[i / samples]->loss_multiplier;
    truncated[i] = completions.row<int32_t>("finish", i)[0] == static_cast<int32_t>(Finish::length);
    ids.insert(ids.end(), prompt.begin(), prompt.end());
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    token_mask.resize(ids.size() - tokens.size(), 0.0f);
    token_mask.resize(ids.size(), 1.0f);
    logprobs.resize(ids.size() - tokens.size(), 0.0f);
    logprobs.insert(logprobs.end(), drawn_logprobs.begin(), drawn_logprobs.end());
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  for (const auto& [name, column] : drawn.columns.columns()) batch.set(name, column.tensor, column.axis);
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  batch.set("token_mask", data::Tensor::of(token_mask), data::Axis::token);
  batch.set("generation_logprobs", data::Tensor::of(logprobs), data::Axis::token);
  batch.set("prompt_length", data::Tensor::of(prompt_lengths), data::Axis::sample);
  batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
  batch.set("truncated", data::Tensor::of(truncated), data::Axis::sample);
  return batch;
}

// Scores every sample in the environment that its prompt names. Invalid ones leave the loss.
void score(Rollout& rollout, const Environments& environments, int64_t samples, int64_t step) {
  const int64_t rows = rollout.batch.size();
  std::vector<environment::Sample> all(rows);
  std::map<std::string, std::vector<int64_t>> by_environment;
  for (int64_t i = 0; i < rows; ++i) {
    const data::Datum& prompt = *rollout.prompts[i];
    const int64_t prompt_tokens = rollout.batch.row<int64_t>("prompt_length", i)[0];
    all[i] = {prompt.text,
              rollout.responses[i],
              prompt.answer,
              prompt_tokens,
              rollout.batch.length(i) - prompt_tokens,
              rollout.batch.row<uint8_t>("truncated", i)[0] != 0,
              &prompt.metadata,
              rollout.batch.row<int64_t>("input_ids", i),
              static_cast<uint64_t>(i / samples)};
    by_environment[prompt.env_name].push_back(i);
  }
  environment::Scores scores;  // of the whole batch
  scores.rewards.resize(rows);
  scores.invalid.resize(rows);
  for (const auto& [name, indices] : by_environment) {
    std::vector<environment::Sample> part;
    for (const int64_t i : indices) part.push_back(all[i]);
    const environment::Scores of_part = environments.at(name)->score(part, step);
    for (size_t k = 0; k < indices.size(); ++k) {
      scores.rewards[indices[k]] = of_part.rewards[k];
      scores.invalid[indices[k]] = of_part.invalid[k];
    }
    for (const auto& [component, values] : of_part.components) {
      auto& column = rollout.components[component];
      column.resize(rows);
      for (size_t k = 0; k < indices.size(); ++k) column[indices[k]] = values[k];
    }
    scores.metrics.insert(of_part.metrics.begin(), of_part.metrics.end());
  }
  const auto mask = rollout.batch.at("sample_mask").span<float>();
  for (int64_t i = 0; i < rows; ++i) {
    if (scores.invalid[i]) mask[i] = 0;
  }
  rollout.batch.set("rewards", data::Tensor::of(scores.rewards), data::Axis::sample);
  rollout.metrics = environment::environment_metrics(all, scores, samples);
  rollout.metrics.insert(scores.metrics.begin(), scores.metrics.end());
  for (const auto& [component, values] : rollout.components) {
    double sum = 0, valid = 0;
    for (int64_t i = 0; i < rows; ++i) {
      if (scores.invalid[i]) continue;
      sum += values[i];
      valid += 1;
    }
    rollout.metrics["reward/" + component] = valid > 0 ? sum / valid : 0;
  }
}

void add_length_metrics(Rollout& rollout) {
  double total = 0, generated = 0, longest = 0, truncated = 0;
  const double rows = static_cast<double>(rollout.batch.size());
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    const double length = static_cast<double>(rollout.batch.length(i));
    const double response = length - static_cast<double>(rollout.batch.row<int64_t>("prompt_length", i)[0]);
    total += length;
    generated += response;
    longest = std::max(longest, response);
    truncated += rollout.batch.row<uint8_t>("truncated", i)[0];
  }
  auto& metrics = rollout.metrics;
  metrics["total_turns"] = rows;
  metrics["avg_turns_per_sample"] = metrics["max_turns_per_sample"] = 1;
  metrics["truncation_rate"] = truncated / rows;
  metrics["natural_termination_rate"] = 1 - truncated / rows;
  metrics["mean_total_tokens_per_sample"] = total / rows;
  metrics["mean_gen_tokens_per_sample"] = generated / rows;
  metrics["max_gen_tokens_per_sample"] = longest;
  metrics["mean_prompt_length"] = (total - generated) / rows;
  metrics["total_num_tokens"] = total;
}

}  // namespace

std::vector<Request> group_requests(const Plan& plan, int64_t index, std::span<const int32_t> prompt, int64_t attempt) {
  const std::vector<int64_t>& lengths = plan.sampling.imposed_lengths;
  check_imposed(lengths, static_cast<size_t>(plan.prompts), plan.samples);
  std::vector<Request> requests;
  for (int64_t g = 0; g < plan.samples; ++g) {
    const auto row = static_cast<uint64_t>(index * plan.samples + g);
    const auto draw = row + static_cast<uint64_t>(attempt * plan.prompts * plan.samples);
    requests.push_back({prompt, index, data::CounterRandom(plan.seed, static_cast<uint64_t>(plan.step)).at(draw)});
    if (!lengths.empty()) requests.back().max_new_tokens = lengths[row];
  }
  return requests;
}

std::vector<int32_t> prompt_tokens(const data::Datum& prompt) {
  return {prompt.token_ids.begin(), prompt.token_ids.end()};
}

Environments make_environments(const config::EnvConfig& config, const std::vector<std::string>& names,
                               plugin::Registry& plugins, const plugin::Locate& locate) {
  Environments environments;
  for (const std::string& name : names) {
    if (environments.contains(name)) continue;
    const auto found = config.find(name);
    const auto section = found == config.end() ? nlohmann::ordered_json::object() : found->second;
    environments[name] = section.is_object() && section.contains("plugin")
                             ? environment::make_plugin_environment(name, section, plugins, locate)
                             : environment::make_environment(name, section);
  }
  return environments;
}

Rollout finish_rollout(const Drawn& drawn, const Environments& environments, const ModelText& text,
                       const std::vector<const data::Datum*>& prompts, int64_t samples, int64_t step) {
  Rollout rollout;
  rollout.batch = join(drawn, samples, prompts);
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    rollout.prompts.push_back(prompts[i / samples]);
    rollout.responses.push_back(
        text.tokenizer->decode(drawn.completions.row<int32_t>("tokens", i), /*skip_special_tokens=*/true));
  }
  score(rollout, environments, samples, step);
  add_length_metrics(rollout);
  return rollout;
}

Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const Sampling& sampling, const std::vector<const data::Datum*>& prompts,
                    int64_t generations_per_prompt, uint64_t seed, int64_t step) {
  const Plan plan{sampling, static_cast<int64_t>(prompts.size()), generations_per_prompt, seed, step};
  Drawn drawn;
  for (const data::Datum* prompt : prompts) drawn.prompts.push_back(prompt_tokens(*prompt));
  std::vector<Request> requests;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto group = group_requests(plan, static_cast<int64_t>(p), drawn.prompts[p]);
    requests.insert(requests.end(), group.begin(), group.end());
  }
  drawn.completions = generation.generate(requests, sampling);
  drawn.columns = generation.take_columns();
  Rollout rollout = finish_rollout(drawn, environments, text, prompts, generations_per_prompt, step);
  for (const auto& [name, value] : generation.metrics()) rollout.metrics[name] = value;
  return rollout;
}

}  // namespace hexad::rollout
