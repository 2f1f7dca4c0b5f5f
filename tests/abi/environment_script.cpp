#include "core/plugin/kind/environment_plugin.hpp"
#include "tests/abi/script_support.hpp"

namespace abi_test {
namespace {

using hexad::plugin::EnvironmentPlugin;

struct Text {
  uint64_t group;
  std::string response, ground_truth, metadata;
  std::vector<int64_t> tokens;  // the first two are the prompt's
  int32_t finish = HEXAD_FINISH_STOP;
  int64_t turn = 0;
  std::string state = {};
};

hexad_sample to_abi(const Text& text) {
  hexad_sample sample{};
  sample.struct_size = HEXAD_STRUCT_SIZE(hexad_sample, state_size);
  sample.finish = text.finish;
  sample.group = text.group;
  sample.prompt = "6 * 7?";
  sample.prompt_size = 6;
  sample.response = text.response.c_str();
  sample.response_size = text.response.size();
  sample.ground_truth = text.ground_truth.c_str();
  sample.ground_truth_size = text.ground_truth.size();
  sample.metadata = text.metadata.c_str();
  sample.metadata_size = text.metadata.size();
  sample.tokens = text.tokens.data();
  sample.prompt_tokens = 2;
  sample.response_tokens = static_cast<int64_t>(text.tokens.size()) - 2;
  sample.turn = text.turn;
  sample.state = text.state.c_str();
  sample.state_size = text.state.size();
  return sample;
}

Json score(EnvironmentPlugin& environment, const Recorder& recorder, const std::vector<Text>& texts) {
  std::vector<hexad_sample> samples;
  std::vector<const hexad_sample*> pointers;
  for (const Text& text : texts) samples.push_back(to_abi(text));
  for (const hexad_sample& sample : samples) pointers.push_back(&sample);
  const auto scores = environment.score(recorder.context, pointers);
  Json told{{"rewards", scores.rewards}, {"invalid", scores.invalid}, {"components", scores.components}};
  for (const auto& reply : scores.replies) {  // none: of a release before 1.3
    if (!reply.content && !reply.state) continue;
    told["replies"].push_back({reply.content.value_or("none"), reply.role, reply.state.value_or("none")});
  }
  if (!scores.answers.empty()) told["answers"] = scores.answers;  // none: of a release before 1.4
  return told;
}

}  // namespace

Json run_environment(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config) {
  Recorder recorder;
  EnvironmentPlugin environment(plugin, recorder.context,
                                hexad::plugin::PluginConfig("env.tested", {{"plugin_config", plugin_config}}));
  const std::vector<Text> texts = {{0, "42", "42", "{}", {1, 2, 3, 4}},
                                   {0, "24 or so", "42", "{}", {1, 2, 5, 6, 7}, HEXAD_FINISH_LENGTH},
                                   {3, std::string("4???\0 4", 7), "4", R"({"a":[1,2]})", {1, 2, 9}},
                                   {3, "", "42", R"({"a":[1,2]})", {1, 2}}};
  Json told;
  told["components"] = environment.component_names();
  told["whole"] = score(environment, recorder, texts);
  told["second_group"] = score(environment, recorder, {texts[2], texts[3]});
  if (plugin.desc->min_host_minor >= 3) {
    std::vector<Text> later = texts;
    for (Text& text : later) text.turn = 1 + (&text - later.data()), text.state = "s";
    told["later"] = score(environment, recorder, later);
  }
  told["none"] = score(environment, recorder, {});
  told["no_truth"] = refusal([&] { score(environment, recorder, {{0, "42", "", "{}", {1, 2, 3}}}); });
  told["host_metrics"] = recorder.metrics;
  return told;
}

}  // namespace abi_test
