#include <cmath>
#include <map>

#include "sdk/verify/case/generator_case.hpp"

namespace hexad::verify {
namespace {

constexpr int kDraws = 256;
constexpr double kMass = 0.25;     // largest error of a sum of probabilities, four standard deviations
constexpr double kLogprob = 1e-2;  // of one token after one prompt, beside other requests

// The probabilities of the tokens that were seen sum to the mass that was seen: 1 less the share of tokens that came
// once (Good and Turing's estimate of what was not seen).
void check_mass(const Subject& subject, void* self, Findings& findings) {
  std::vector<hexad_request> requests;
  for (uint64_t id = 1; id <= kDraws; ++id) requests.push_back(make_request(id, /*temperature=*/1, 1000 + id, 1));
  const Answers answers = run_requests(subject, self, requests);
  if (!ok(answers, "draws", findings)) return;
  std::map<int32_t, std::pair<int, double>> seen;  // token: times, log-prob
  for (const auto& [id, answer] : answers.by_id) {
    if (answer.tokens.size() != 1 || answer.logprobs.size() != 1) continue;
    auto& [times, logprob] = seen.emplace(answer.tokens[0], std::pair(0, answer.logprobs[0])).first->second;
    ++times;
    findings.expect(std::abs(logprob - answer.logprobs[0]) <= kLogprob, "log-probs",
                    "one token after one prompt has the log-probs " + std::to_string(logprob) + " and " +
                        std::to_string(answer.logprobs[0]));
  }
  double sum = 0, once = 0;
  for (const auto& [token, entry] : seen) {
    sum += std::exp(entry.second);
    once += entry.first == 1;
  }
  const double mass = 1 - once / kDraws;
  findings.expect(std::abs(sum - mass) <= kMass, "log-probs",
                  std::to_string(kDraws) +
                      " tokens were drawn after one prompt: the probabilities of those that came sum to " +
                      std::to_string(sum) + ", wanted about " + std::to_string(mass) +
                      ". They are to be those of the distribution that was drawn from");
}

void check_stop(const Subject& subject, void* self, Findings& findings) {
  const Answers free = run_requests(subject, self, {make_request(1, 0, 1, kNewTokens)});
  if (!ok(free, "stop token", findings) || !free.by_id.contains(1) || free.by_id.at(1).tokens.empty()) return;
  const int32_t stop = free.by_id.at(1).tokens[0];
  hexad_request request = make_request(2, 0, 1, kNewTokens);
  request.stop_token_ids = &stop;
  request.num_stop_token_ids = 1;
  const Answers stopped = run_requests(subject, self, {request});
  if (!ok(stopped, "stop token", findings) || !stopped.by_id.contains(2)) return;
  const Answer& answer = stopped.by_id.at(2);
  findings.expect(answer.tokens == std::vector{stop} && answer.finish == HEXAD_FINISH_STOP, "stop token",
                  "a request whose first token is a stop token gave " + std::to_string(answer.tokens.size()) +
                      " tokens and finish " + std::to_string(answer.finish) +
                      ", wanted the token itself and HEXAD_FINISH_STOP");
}

}  // namespace

void check_draws(const Subject& subject, void* self, Findings& findings) {
  check_mass(subject, self, findings);
  check_stop(subject, self, findings);
}

}  // namespace hexad::verify
