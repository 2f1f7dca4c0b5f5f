#include "core/rollout/turns.hpp"

#include "lib/base/error.hpp"
#include "lib/base/random.hpp"

namespace hexad::rollout {
namespace {

void check_imposed(const Plan& plan) {
  const std::vector<int64_t>& lengths = plan.sampling.imposed_lengths;
  const auto responses = static_cast<size_t>(plan.prompts * plan.samples);
  if (lengths.empty() || lengths.size() == responses) return;
  fail(ErrorKind::config,
       "policy.generation.imposed_lengths has {} lengths, and a rollout of {} prompts x {} has {} responses",
       lengths.size(), plan.prompts, plan.samples, responses);
}

// The request of row `row` of a rollout's prompts x samples, at its turn `turn`. After the first one every conversation
// is a prompt of its own.
Request request_of(const Plan& plan, int64_t row, int64_t turn, std::span<const int32_t> prompt) {
  const auto draw = static_cast<uint64_t>(row + plan.round * plan.prompts * plan.samples);
  Request request{prompt, row / plan.samples, CounterRandom(plan.seed, static_cast<uint64_t>(plan.step)).at(draw)};
  const std::vector<int64_t>& lengths = plan.sampling.imposed_lengths;
  if (!lengths.empty()) request.max_new_tokens = lengths[static_cast<size_t>(row)];
  if (turn > 0) {
    request.group = plan.prompts + row;
    request.seed = CounterRandom(request.seed, static_cast<uint64_t>(turn)).at(0);
  }
  return request;
}

}  // namespace

Turns::Turns(const std::vector<data::SharedDatum>& prompts, const Plan& plan, int64_t first)
    : first_row_(first * plan.samples) {
  check_imposed(plan);
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (int64_t g = 0; g < plan.samples; ++g) conversations_.emplace_back(prompts[p], first + static_cast<int64_t>(p));
  }
  row_of_columns_.resize(conversations_.size());
}

std::vector<Request> Turns::requests(const Plan& plan) {
  going_on_.clear();
  std::vector<Request> requests;
  for (size_t i = 0; i < conversations_.size(); ++i) {
    const Conversation& one = conversations_[i];
    if (one.ended || one.turns == plan.turns) continue;
    going_on_.push_back(i);
    requests.push_back(request_of(plan, first_row_ + static_cast<int64_t>(i), one.turns, one.tokens));
  }
  return requests;
}

void Turns::add_responses(const data::Batch& completions, data::Batch columns, const ModelText& text) {
  for (size_t i = 0; i < going_on_.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const bool truncated = completions.row<int32_t>("finish", row)[0] == static_cast<int32_t>(Finish::length);
    conversations_[going_on_[i]].add_response(
        {completions.row<int32_t>("tokens", row), completions.row<float>("logprobs", row),
         completions.row<int32_t>("weight_versions", row), truncated},
        text);
    row_of_columns_[going_on_[i]] = columns_count_ + row;
  }
  columns_count_ += columns.size();
  columns_.push_back(std::move(columns));
}

std::vector<Conversation*> Turns::newest() {
  std::vector<Conversation*> all;
  for (const size_t i : going_on_) all.push_back(&conversations_[i]);
  return all;
}

void Turns::add_replies(const Plan& plan, const ModelText& text) {
  for (const size_t i : going_on_) {
    Conversation& one = conversations_[i];
    one.ended = !one.reply || (one.cut_off && plan.ends_when_truncated);
    if (one.ended || one.turns == plan.turns) continue;
    const std::vector<int32_t> tokens = reply_tokens(text, *one.reply, one.tokens.back());
    const auto length = static_cast<int64_t>(one.tokens.size() + tokens.size());
    if (length >= plan.sampling.max_total_tokens) {
      one.ended = one.truncated = true;
    } else {
      one.add_reply(tokens, one.reply->content);
    }
  }
}

data::Batch Turns::columns() const {
  if (columns_.size() == 1) return columns_[0];
  return data::Batch::concat(columns_).select(row_of_columns_);
}

std::vector<int32_t> reply_tokens(const ModelText& text, const environment::Reply& reply, int32_t last_token) {
  const auto encode = [&](std::string_view piece) {
    return text.tokenizer->encode(piece, /*add_special_tokens=*/false);
  };
  if (!text.chat_template) return encode(reply.content);
  // A conversation with a response that is known by its text: what the template writes behind it is what is wanted.
  const std::string response = "the-response-of-this-turn";
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", "?"}},
                                           {{"role", "assistant"}, {"content", response}},
                                           {{"role", reply.role}, {"content", reply.content}}};
  const std::string rendered = text.tools().render(messages, {.add_generation_prompt = true, .tools = {}});
  const size_t at = rendered.find(response);
  if (at == rendered.npos)
    fail(ErrorKind::data,
         "the chat template leaves out what the assistant said before a message of role '{}': a rollout of several "
         "turns needs a template that shows it (policy.tokenizer.chat_template)",
         reply.role);
  std::string_view behind = std::string_view(rendered).substr(at + response.size());
  const std::string last = text.tokenizer->decode(std::vector{last_token}, /*skip_special_tokens=*/false);
  const bool is_eos = std::find(text.eos_ids.begin(), text.eos_ids.end(), last_token) != text.eos_ids.end();
  if (is_eos && behind.starts_with(last)) behind.remove_prefix(last.size());
  return encode(behind);
}

}  // namespace hexad::rollout
