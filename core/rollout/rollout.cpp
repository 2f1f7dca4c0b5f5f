#include "core/rollout/rollout.hpp"

#include "core/base/error.hpp"
#include "core/data/random.hpp"
#include "core/rollout/reply.hpp"
#include "core/rollout/scoring.hpp"

namespace hexad::rollout {
namespace {

void check_imposed(const std::vector<int64_t>& lengths, size_t prompts, int64_t samples) {
  const size_t responses = prompts * static_cast<size_t>(samples);
  if (lengths.empty() || lengths.size() == responses) return;
  fail(ErrorKind::config,
       "policy.generation.imposed_lengths has {} lengths, and a rollout of {} prompts x {} has {} responses",
       lengths.size(), prompts, samples, responses);
}

std::vector<Conversation> conversations_of(const std::vector<const data::Datum*>& prompts, int64_t samples) {
  std::vector<Conversation> all;
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (int64_t g = 0; g < samples; ++g) all.emplace_back(*prompts[p], static_cast<int64_t>(p));
  }
  return all;
}

// The conversations as one batch.
Rollout rollout_of(std::span<const Conversation> conversations, int64_t samples) {
  std::vector<int64_t> lengths, prompt_lengths, ids;
  std::vector<float> mask, logprobs, sample_mask, rewards;
  std::vector<uint8_t> truncated, invalid;
  Rollout rollout;
  for (size_t i = 0; i < conversations.size(); ++i) {
    const Conversation& one = conversations[i];
    lengths.push_back(static_cast<int64_t>(one.tokens.size()));
    prompt_lengths.push_back(one.prompt_tokens);
    ids.insert(ids.end(), one.tokens.begin(), one.tokens.end());
    mask.insert(mask.end(), one.mask.begin(), one.mask.end());
    logprobs.insert(logprobs.end(), one.logprobs.begin(), one.logprobs.end());
    sample_mask.push_back(one.invalid ? 0 : one.prompt->loss_multiplier);
    rewards.push_back(one.reward);
    truncated.push_back(one.truncated), invalid.push_back(one.invalid);
    for (const auto& [name, value] : one.components) {
      rollout.components[name].resize(conversations.size());
      rollout.components[name][i] = value;
    }
    rollout.responses.push_back(one.text);
    rollout.prompts.push_back(one.prompt);
  }
  rollout.batch = data::Batch::of_lengths(lengths);
  rollout.batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  rollout.batch.set("token_mask", data::Tensor::of(mask), data::Axis::token);
  rollout.batch.set("generation_logprobs", data::Tensor::of(logprobs), data::Axis::token);
  rollout.batch.set("prompt_length", data::Tensor::of(prompt_lengths), data::Axis::sample);
  rollout.batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
  rollout.batch.set("rewards", data::Tensor::of(rewards), data::Axis::sample);
  rollout.batch.set("truncated", data::Tensor::of(truncated), data::Axis::sample);
  rollout.batch.set("invalid", data::Tensor::of(invalid), data::Axis::sample);
  rollout.metrics = metrics_of(conversations, samples);
  return rollout;
}

void set_columns(data::Batch& batch, const data::Batch& columns) {
  for (const auto& [name, column] : columns.columns()) batch.set(name, column.tensor, column.axis);
}

// The responses of one turn, of the conversations that are under way.
void add_responses(std::span<Conversation* const> active, const data::Batch& completions, const ModelText& text) {
  for (size_t i = 0; i < active.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const bool truncated = completions.row<int32_t>("finish", row)[0] == static_cast<int32_t>(Finish::length);
    active[i]->add_response(completions.row<int32_t>("tokens", row), completions.row<float>("logprobs", row), truncated,
                            text);
  }
}

// Ends conversations that have no reply, and those whose context has no room for it and for a token more.
void add_replies(std::span<Conversation* const> active, const Verdicts& verdicts, const Plan& plan,
                 const ModelText& text) {
  for (size_t i = 0; i < active.size(); ++i) {
    Conversation& one = *active[i];
    one.ended = one.truncated || !verdicts.replies[i];
    if (one.ended || one.turns == plan.turns) continue;
    const std::vector<int32_t> tokens = reply_tokens(text, *verdicts.replies[i], one.tokens.back());
    const auto length = static_cast<int64_t>(one.tokens.size() + tokens.size());
    if (length >= plan.sampling.max_total_tokens) {
      one.ended = one.truncated = true;
    } else {
      one.add_reply(tokens, verdicts.replies[i]->content);
    }
  }
}

// What generators gave along with the responses of every turn; of every conversation the last, which covers all its tokens.
class Columns {
 public:
  Columns(size_t conversations) : row_of_(conversations) {}
  void add(data::Batch columns, const std::vector<size_t>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) row_of_[rows[i]] = count_ + static_cast<int64_t>(i);
    count_ += columns.size();
    parts_.push_back(std::move(columns));
  }
  data::Batch all() const {
    if (parts_.size() == 1) return parts_[0];
    return data::Batch::concat(parts_).select(row_of_);
  }

 private:
  std::vector<data::Batch> parts_;
  std::vector<int64_t> row_of_;
  int64_t count_ = 0;
};

// The request of row `row` of a rollout's prompts x samples.
Request request_of(const Plan& plan, int64_t row, std::span<const int32_t> prompt) {
  const auto draw = static_cast<uint64_t>(row + plan.round * plan.prompts * plan.samples);
  Request request{prompt, row / plan.samples,
                  data::CounterRandom(plan.seed, static_cast<uint64_t>(plan.step)).at(draw)};
  const std::vector<int64_t>& lengths = plan.sampling.imposed_lengths;
  if (!lengths.empty()) request.max_new_tokens = lengths[static_cast<size_t>(row)];
  return request;
}

// Of one turn. After the first one every conversation is a prompt of its own.
std::vector<Request> requests_of(std::span<Conversation* const> active, const std::vector<size_t>& rows,
                                 const Plan& plan) {
  check_imposed(plan.sampling.imposed_lengths, static_cast<size_t>(plan.prompts), plan.samples);
  std::vector<Request> requests;
  for (size_t i = 0; i < active.size(); ++i) {
    const auto row = static_cast<int64_t>(rows[i]), turn = active[i]->turns;
    Request request = request_of(plan, row, active[i]->tokens);
    if (turn > 0) {
      request.group = plan.prompts + row;
      request.seed = data::CounterRandom(request.seed, static_cast<uint64_t>(turn)).at(0);
    }
    requests.push_back(request);
  }
  return requests;
}

}  // namespace

std::vector<Request> group_requests(const Plan& plan, int64_t index, std::span<const int32_t> prompt) {
  check_imposed(plan.sampling.imposed_lengths, static_cast<size_t>(plan.prompts), plan.samples);
  std::vector<Request> requests;
  for (int64_t g = 0; g < plan.samples; ++g) requests.push_back(request_of(plan, index * plan.samples + g, prompt));
  return requests;
}

std::vector<int32_t> prompt_tokens(const data::Datum& prompt) {
  return {prompt.token_ids.begin(), prompt.token_ids.end()};
}

Environments make_environments(const config::EnvConfig& config, const std::vector<std::string>& names,
                               const environment::Services& services) {
  Environments environments;
  for (const std::string& name : names) {
    if (environments.contains(name)) continue;
    const auto found = config.find(name);
    const auto section = found == config.end() ? nlohmann::ordered_json::object() : found->second;
    environments[name] = environment::make(name, section, services);
  }
  return environments;
}

Rollout finish_rollout(const Drawn& drawn, const Environments& environments, const ModelText& text,
                       const std::vector<const data::Datum*>& prompts, int64_t samples, int64_t step) {
  std::vector<Conversation> conversations = conversations_of(prompts, samples);
  std::vector<Conversation*> all;
  for (Conversation& one : conversations) all.push_back(&one), one.ended = true;
  add_responses(all, drawn.completions, text);
  const Verdicts verdicts = score(all, environments, step);
  check_any_valid(conversations, step);
  Rollout rollout = rollout_of(conversations, samples);
  set_columns(rollout.batch, drawn.columns);
  rollout.metrics.insert(verdicts.metrics.begin(), verdicts.metrics.end());
  return rollout;
}

Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const std::vector<const data::Datum*>& prompts, const Plan& plan) {
  std::vector<Conversation> conversations = conversations_of(prompts, plan.samples);
  Columns columns(conversations.size());
  std::map<std::string, double> metrics;
  for (int64_t turn = 0; turn < plan.turns; ++turn) {
    std::vector<Conversation*> active;
    std::vector<size_t> rows;
    for (size_t i = 0; i < conversations.size(); ++i) {
      if (!conversations[i].ended) active.push_back(&conversations[i]), rows.push_back(i);
    }
    if (active.empty()) break;
    add_responses(active, generation.generate(requests_of(active, rows, plan), plan.sampling), text);
    columns.add(generation.take_columns(), rows);
    const Verdicts verdicts = score(active, environments, plan.step);
    add_replies(active, verdicts, plan, text);
    for (const auto& [name, value] : verdicts.metrics) metrics[name] = value;
    for (const auto& [name, value] : generation.metrics()) metrics[name] = value;
  }
  check_any_valid(conversations, plan.step);
  Rollout rollout = rollout_of(conversations, plan.samples);
  set_columns(rollout.batch, columns.all());
  for (const auto& [name, value] : metrics) rollout.metrics[name] = value;
  return rollout;
}

}  // namespace hexad::rollout
