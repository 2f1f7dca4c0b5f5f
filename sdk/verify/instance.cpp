#include "sdk/verify/instance.hpp"

#include "sdk/verify/case/backend_case.hpp"
#include "sdk/verify/case/environment_case.hpp"
#include "sdk/verify/case/generator_case.hpp"
#include "sdk/verify/case/loss_case.hpp"

namespace hexad::verify {
namespace {

template <typename Vtable, typename Handle>
hexad_code create_as(const Vtable* vtable, const hexad_host* host, Call& call, const Config& config, void** out) {
  Handle* self = static_cast<Handle*>(*out);
  const hexad_code code = vtable->create(host, call.handle(), config.handle(), &self);
  *out = self;
  return code;
}

}  // namespace

hexad_code create(const Subject& subject, const hexad_host* host, Call& call, const Config& config, void** out) {
  const hexad_plugin_desc& desc = *subject.desc;
  if (desc.loss) return create_as<hexad_loss_vtable, hexad_loss>(desc.loss, host, call, config, out);
  if (desc.backend) return create_as<hexad_backend_vtable, hexad_backend>(desc.backend, host, call, config, out);
  if (const auto* environment = environment_of(desc))
    return create_as<hexad_environment_vtable, hexad_environment>(environment, host, call, config, out);
  return create_as<hexad_generator_vtable, hexad_generator>(desc.generator, host, call, config, out);
}

void destroy(const Subject& subject, void* instance) {
  const hexad_plugin_desc& desc = *subject.desc;
  if (desc.loss) return desc.loss->destroy(static_cast<hexad_loss*>(instance));
  if (desc.backend) return desc.backend->destroy(static_cast<hexad_backend*>(instance));
  if (const auto* environment = environment_of(desc))
    return environment->destroy(static_cast<hexad_environment*>(instance));
  desc.generator->destroy(static_cast<hexad_generator*>(instance));
}

Instance::Instance(const Subject& subject, const hexad_host* host)
    : subject_(subject), config_(subject.engine->config()) {
  const auto call = subject.engine->call();
  const hexad_code code = create(subject, host, *call, *config_, &self_);
  if (code == HEXAD_OK && self_) return;
  self_ = nullptr;
  error_ = code == HEXAD_OK ? "create returned OK and no instance" : "create failed: " + call->text();
}

Instance::~Instance() {
  if (self_) destroy(subject_, self_);
}

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
