#include <cmath>

#include "sdk/verify/case/generator_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

void check_answer(uint64_t id, const Answer& answer, Findings& findings) {
  const std::string who = "request " + std::to_string(id);
  findings.expect(answer.finals == 1, "one final event", who + " ended " + std::to_string(answer.finals) + " times");
  findings.expect(answer.finish != HEXAD_FINISH_ERROR, "finish", who + " ended with an error: " + answer.error);
  findings.expect(answer.tokens.size() == answer.logprobs.size(), "log-probs", who + ": not one log-prob a token");
  findings.expect(static_cast<int64_t>(answer.tokens.size()) <= kNewTokens, "max_new_tokens",
                  who + " has " + std::to_string(answer.tokens.size()) + " tokens, " + std::to_string(kNewTokens) +
                      " were allowed");
  if (answer.finish == HEXAD_FINISH_LENGTH)
    findings.prefer(static_cast<int64_t>(answer.tokens.size()) == kNewTokens, "max_new_tokens",
                    who + " ended by length before it was reached");
  for (float logprob : answer.logprobs)
    findings.expect(std::isfinite(logprob) && logprob <= 1e-6, "log-probs",
                    who + " has the log-prob " + std::to_string(logprob));
  findings.expect(answer.bad_column.empty(), "columns", who + ": " + answer.bad_column);
  if (answer.tokens.empty()) return;
  findings.expect(!answer.spans.empty() && answer.spans[0].start == 0, "version spans",
                  who + ": the first span does not start at token 0");
  for (size_t i = 1; i < answer.spans.size(); ++i) {
    const bool rising =
        answer.spans[i].start > answer.spans[i - 1].start && answer.spans[i].version > answer.spans[i - 1].version;
    findings.expect(rising, "version spans", who + ": starts and versions do not rise");
  }
}

// False if a request was not answered: nothing else would be, and all would be waited for.
bool check_requests(const Subject& subject, void* self, Findings& findings) {
  std::vector<hexad_request> requests = {make_request(1, 0, 1, kNewTokens), make_request(2, 1, 7, kNewTokens),
                                         make_request(3, 1, 7, kNewTokens), make_request(4, 1, 8, kNewTokens)};
  requests[2].group = requests[1].group;  // two samples of one prompt
  const Answers answers = run_requests(subject, self, requests);
  if (!ok(answers, "generate", findings)) return false;
  findings.expect(answers.by_id.size() == requests.size(), "one final event",
                  std::to_string(answers.by_id.size()) + " of " + std::to_string(requests.size()) +
                      " requests were answered within " + std::to_string(std::lround(subject.patience_s)) + " s");
  for (const auto& [id, answer] : answers.by_id) check_answer(id, answer, findings);
  if (answers.by_id.size() != requests.size()) return false;
  findings.expect(answers.by_id.at(2).tokens == answers.by_id.at(3).tokens, "seed",
                  "two requests with one prompt and one seed got other tokens");
  const Answers alone = run_requests(subject, self, {make_request(9, 1, 7, kNewTokens)});
  if (ok(alone, "generate", findings) && alone.by_id.contains(9))
    findings.expect(alone.by_id.at(9).tokens == answers.by_id.at(2).tokens, "seed",
                    "a sample depends on what runs beside it");
  return true;
}

// False likewise.
bool check_cancel(const Subject& subject, void* self, Findings& findings) {
  const Answers answers = run_requests(
      subject, self, {make_request(1, 1, 1, kNewTokens), make_request(2, 1, 2, kNewTokens)}, /*cancel_id=*/1);
  if (!ok(answers, "cancel", findings)) return false;
  if (!findings.expect(answers.by_id.size() == 2, "cancel", "a cancelled request, or its neighbour, never ended"))
    return false;
  for (const auto& [id, answer] : answers.by_id)
    findings.expect(answer.finals == 1, "cancel",
                    "request " + std::to_string(id) + " ended " + std::to_string(answer.finals) + " times");
  const auto call = subject.engine->call();
  const uint64_t unknown = 12345;
  findings.expect(
      subject.desc->generator->cancel(static_cast<hexad_generator*>(self), call->handle(), &unknown, 1) == HEXAD_OK,
      "cancel", "cancelling an unknown request fails; it has ended, which is no error");
  return true;
}

void check_refusals(const Subject& subject, void* self, Findings& findings) {
  std::vector<int32_t> prompt(1 << 22, 1);
  hexad_request request = make_request(1, 0, 1, kNewTokens);
  request.prompt = prompt.data();
  request.prompt_size = static_cast<int64_t>(prompt.size());
  const Answers answers = run_requests(subject, self, {request});
  const bool refused =
      answers.code != HEXAD_OK ? !answers.text.empty() : answers.by_id.contains(1) && answers.by_id.at(1).finals == 1;
  findings.expect(refused, "long prompt", "a prompt of 4 million tokens was neither refused with a text nor ended");
  const Answers again = run_requests(subject, self, {make_request(2, 0, 1, kNewTokens)});
  ok(again, "usable after an error", findings);
}

}  // namespace

bool ok(const Answers& answers, const std::string& what, Findings& findings) {
  findings.expect(answers.stranger.empty(), "ids", answers.stranger);
  return findings.expect(answers.code == HEXAD_OK, what, "it failed: " + answers.text);
}

void check_generator(const Subject& subject, Findings& findings) {
  const Instance instance(subject, subject.engine->host());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  hexad_generator_info info{};
  info.struct_size = HEXAD_STRUCT_SIZE(hexad_generator_info, weight_form);
  const auto call = subject.engine->call();
  const hexad_code code =
      subject.desc->generator->describe(static_cast<hexad_generator*>(instance.self()), call->handle(), &info);
  if (!findings.expect(code == HEXAD_OK, "describe", "it failed: " + call->text())) return;
  findings.expect(
      info.max_sequences >= 1 && info.max_model_len >= 2, "describe",
      "max_sequences " + std::to_string(info.max_sequences) + ", max_model_len " + std::to_string(info.max_model_len));
  if (!check_requests(subject, instance.self(), findings) || !check_cancel(subject, instance.self(), findings)) return;
  check_events(subject, instance.self(), findings);
  check_draws(subject, instance.self(), findings);
  check_refusals(subject, instance.self(), findings);
  check_refit(subject, instance.self(), findings);
}

}  // namespace hexad::verify
