#include "sdk/verify/trial.hpp"

#include "sdk/verify/case/backend_case.hpp"
#include "sdk/verify/case/environment_case.hpp"
#include "sdk/verify/case/generator_case.hpp"
#include "sdk/verify/case/loss_case.hpp"

namespace hexad::verify {

Trial run_trial(const Subject& subject, void* instance, const CallOptions& options, bool grown) {
  if (subject.desc->loss) {
    std::string error;
    const LossUse use = plan_of(subject, instance, &error);
    if (!error.empty()) return {HEXAD_INTERNAL, "plan: " + error, "", ""};
    const LossResult result =
        compute(subject, instance, make_case(*subject.desc->loss, {7, 12}, 11), use, options, grown);
    return {result.code, result.text, result.bits(), result.damage};
  }
  if (subject.desc->backend) {
    const BackendResult result = forward(subject, instance, make_tokens({7, 12}, 11), HEXAD_WEIGHTS_CURRENT, options);
    return {result.code, result.text,
            std::string(reinterpret_cast<const char*>(result.logprobs.data()), result.logprobs.size() * sizeof(float)),
            result.damage};
  }
  if (environment_of(*subject.desc)) {
    const ScoreResult result = score(subject, instance, make_samples(), options, grown);
    return {result.code, result.text, result.bits(), result.damage};
  }
  const Answers answers = run_requests(subject, instance, {make_request(1, /*temperature=*/0, 5, 4)}, 0, options);
  return {answers.code, answers.text, answers.bits(), ""};
}

}  // namespace hexad::verify
