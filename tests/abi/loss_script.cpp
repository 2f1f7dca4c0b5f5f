#include "core/plugin/kind/loss_plugin.hpp"
#include "tests/abi/script_support.hpp"

namespace abi_test {
namespace {

using hexad::plugin::LossPlugin;

// Two sequences of 3 and 4 tokens; all numbers are exact in binary.
Json compute(LossPlugin& loss, const Recorder& recorder, double global_valid_tokens = 4) {
  const int64_t cu_seqlens[] = {0, 3, 7};
  Array<float> logprobs({0, -0.5f, -1.25f, 0, -0.125f, 1.5f, -3}), prev({0, -0.75f, -1, 0, -2, 0.25f, -3}),
      advantages({1, 1, 1, -0.5f, -0.5f, -0.5f, -0.5f}), mask({0, 1, 1, 0, 1, 1, 0}), grad({9, 9, 9, 9, 9, 9, 9});
  const std::vector<hexad_named_tensor> outputs{{"logprobs", &logprobs.tensor, nullptr, HEXAD_AXIS_TOKEN, 0}};
  const std::vector<hexad_named_tensor> inputs{{"token_mask", &mask.tensor, nullptr, HEXAD_AXIS_TOKEN, 0},
                                               {"advantages", &advantages.tensor, nullptr, HEXAD_AXIS_TOKEN, 0},
                                               {"prev_logprobs", &prev.tensor, nullptr, HEXAD_AXIS_TOKEN, 0}};
  const std::vector<DLTensor*> grads{&grad.tensor};
  const auto value = loss.compute(recorder.context, {2, 7, cu_seqlens, global_valid_tokens, 2}, inputs, outputs, grads);
  Json metrics = Json::array();
  for (const auto& metric : value.metrics) metrics.push_back({metric.name, metric.value, metric.weight, metric.reduce});
  return {{"loss", value.loss}, {"grad", grad.data}, {"metrics", metrics}};
}

Json advantages(LossPlugin& loss, const Recorder& recorder) {
  const int64_t cu_seqlens[] = {0, 1, 3, 6};
  Array<int64_t> ids({1, 2, 3, 4, 5, 6});
  Array<float> rewards({1, 0, 0.5f}), out({9, 9, 9, 9, 9, 9});
  const hexad_named_tensor tensors[] = {{"input_ids", &ids.tensor, nullptr, HEXAD_AXIS_TOKEN, 0},
                                        {"rewards", &rewards.tensor, nullptr, HEXAD_AXIS_SAMPLE, 0}};
  hexad_batch rollout{};
  rollout.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
  rollout.num_sequences = 3;
  rollout.num_tokens = 6;
  rollout.cu_seqlens = cu_seqlens;
  rollout.tensors = tensors;
  rollout.num_tensors = 2;
  loss.advantages(recorder.context, rollout, out.tensor);
  return out.data;
}

}  // namespace

Json run_loss(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config) {
  Recorder recorder;
  const Json section = {{"plugin_config", plugin_config}};
  LossPlugin loss(plugin, recorder.context, hexad::plugin::PluginConfig("loss_fn", section));
  Json told;
  told["differentiable"] = loss.differentiable_inputs();
  told["plain"] = loss.plain_inputs();
  told["first"] = compute(loss, recorder);
  const std::vector<std::pair<std::string, double>> reduced{{"reward", 1}, {"kl", 0.25}};
  loss.end_step(recorder.context, reduced);
  told["second"] = compute(loss, recorder);

  const std::string state = loss.save_state(recorder.context);
  LossPlugin resumed(plugin, recorder.context, hexad::plugin::PluginConfig("loss_fn", section));
  if (!state.empty()) resumed.load_state(recorder.context, state);
  told["state_bytes"] = state.size();
  told["resumed"] = compute(resumed, recorder);
  if (loss.has_advantages()) told["advantages"] = advantages(loss, recorder);
  told["no_tokens"] = refusal([&] { compute(loss, recorder, 0); });
  told["host_metrics"] = recorder.metrics;
  return told;
}

}  // namespace abi_test
