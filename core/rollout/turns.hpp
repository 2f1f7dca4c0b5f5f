// Samples that go on turn by turn: a response of the model, what the environment says of it, its reply.
#pragma once
#include "core/environment/environment.hpp"
#include "core/rollout/conversation.hpp"
#include "core/rollout/model_text.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::rollout {

// A turn is: requests, add_responses, score() of `newest`, add_replies. Tokens that the model wrote are never tokenized
// again.
class Turns {
 public:
  // `plan.samples` of each prompt. The first prompt stands at place `first` of the plan's rollout. Shares the prompts.
  Turns(const std::vector<data::SharedDatum>& prompts, const Plan& plan, int64_t first = 0);

  // Those of the next turn, of the samples that go on; none: all have ended, or had plan.turns responses. The prompts
  // are borrowed until the responses are added.
  std::vector<Request> requests(const Plan& plan);
  // To these requests, in their order: as Generation::generate and take_columns give them.
  void add_responses(const data::Batch& completions, data::Batch columns, const ModelText& text);
  // The samples of those responses.
  std::vector<Conversation*> newest();
  // After score(). Ends samples that have no reply, those whose response was cut off where the plan says so, and those
  // whose context has no room for the reply and for a token more (they count as truncated).
  void add_replies(const Plan& plan, const ModelText& text);

  std::vector<Conversation>& conversations() { return conversations_; }
  // What generators gave along with the samples, for all their tokens.
  data::Batch columns() const;

 private:
  int64_t first_row_;  // of the plan's prompts x samples
  std::vector<Conversation> conversations_;
  std::vector<size_t> going_on_;  // in the current turn
  std::vector<data::Batch> columns_;
  std::vector<int64_t> row_of_columns_;  // of every sample the newest, which covers all its tokens
  int64_t columns_count_ = 0;
};

// The tokens that follow a response which ended with `last_token`, up to where the next response begins: the end of the
// response's message if the model has not written it, the reply as the chat template writes it, and the opening of
// the next response. Tokens of the conversation so far stay as they were sampled. Without a chat template the reply's
// text alone. Throws Error(data) if the template does not show a response's text as it is.
std::vector<int32_t> reply_tokens(const ModelText& text, const environment::Reply& reply, int32_t last_token);

}  // namespace hexad::rollout
