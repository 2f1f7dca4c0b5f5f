#include <functional>
#include <numeric>

#include "core/plugin/kind/generator_plugin.hpp"
#include "tests/abi/script_support.hpp"

namespace abi_test {
namespace {

using hexad::plugin::GeneratorPlugin;
constexpr int kMaxPolls = 100;

hexad_request request(uint64_t id, uint64_t group, uint64_t seed, const std::vector<int32_t>& prompt) {
  hexad_request made{};
  made.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
  made.id = id;
  made.group = group;
  made.seed = seed;
  made.prompt = prompt.data();
  made.prompt_size = static_cast<int64_t>(prompt.size());
  made.max_new_tokens = 5;
  made.temperature = made.top_p = 1;
  return made;
}

// Of int16, the one kind that there is.
Json columns(const hexad_completion& event) {
  Json all = Json::object();
  for (int64_t i = 0; i < event.num_columns; ++i) {
    const DLTensor& tensor = *event.columns[i].tensor;
    const std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    const auto* values = HEXAD_DATA(const int16_t, &tensor);
    all[event.columns[i].name] = {event.columns[i].axis, shape, std::vector<int16_t>(values, values + count)};
  }
  return all;
}

Json completion(const hexad_completion& event) {
  Json spans = Json::array();
  for (int64_t i = 0; i < event.num_spans; ++i) spans.push_back({event.spans[i].start, event.spans[i].version});
  Json told = {{"id", event.id},
               {"finish", event.finish},
               {"tokens", std::vector<int32_t>(event.tokens, event.tokens + event.count)},
               {"logprobs", std::vector<float>(event.logprobs, event.logprobs + event.count)},
               {"spans", spans}};
  if (HEXAD_HAS(&event, num_columns) && event.num_columns > 0) told["columns"] = columns(event);
  return told;
}

// The final events of `expected` requests, in the order in which they come.
Json finished(GeneratorPlugin& generator, const Recorder& recorder, size_t expected) {
  Json events = Json::array();
  for (int i = 0; i < kMaxPolls && events.size() < expected; ++i) {
    generator.poll(recorder.context, 2, 10, [&](const hexad_completion& event) {
      if (event.finish != HEXAD_FINISH_NONE) events.push_back(completion(event));
    });
  }
  return events;
}

Json generate(GeneratorPlugin& generator, const Recorder& recorder, uint64_t first_id) {
  const std::vector<int32_t> prompt{1, 2, 0}, stops{3};
  hexad_request plain = request(first_id, 0, 7, prompt), stopping = request(first_id + 1, 1, 8, prompt),
                cancelled = request(first_id + 2, 1, 9, prompt);
  stopping.stop_token_ids = stops.data();
  stopping.num_stop_token_ids = 1;
  const hexad_request* const requests[] = {&plain, &stopping, &cancelled};
  generator.submit(recorder.context, requests);
  const uint64_t ids[] = {cancelled.id, 999};
  generator.cancel(recorder.context, ids);
  return finished(generator, recorder, 3);
}

void refit(GeneratorPlugin& generator, const Recorder& recorder, bool commit) {
  Array<float> weights({0.25f, -0.5f, 1, 0});
  const int64_t shape[] = {4}, offsets[] = {0};
  const hexad_weight_slice slice{"unigram.theta", &weights.tensor, shape, offsets, shape, 1, {kDLFloat, 32, 1}};
  hexad_weight_list bucket{};
  bucket.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  bucket.slices = &slice;
  bucket.count = 1;
  generator.update_begin(recorder.context, commit ? 5 : 4);
  generator.update_bucket(recorder.context, bucket);
  generator.update_end(recorder.context, commit);
}

}  // namespace

Json run_generator(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config) {
  Recorder recorder;
  const Json section = {{"model_name", "toy"}, {"max_total_sequence_length", 64}, {"plugin_config", plugin_config}};
  GeneratorPlugin generator(plugin, recorder.context, hexad::plugin::PluginConfig("policy.generation", section));
  const hexad_generator_info& info = generator.info();
  Json told;
  told["info"] = {info.caps, info.max_sequences, info.max_model_len, info.kv_capacity, info.weight_form};
  told["first"] = generate(generator, recorder, 10);
  refit(generator, recorder, false);
  told["update_dropped"] = generate(generator, recorder, 20);
  refit(generator, recorder, true);
  told["updated"] = generate(generator, recorder, 30);
  generator.update_begin(recorder.context, 6);
  told["empty_update"] = refusal([&] { generator.update_end(recorder.context, true); });
  generator.pause(recorder.context);
  generator.resume(recorder.context);
  generator.sleep(recorder.context, 2);
  generator.wake(recorder.context);
  generator.flush_cache(recorder.context);
  told["woken"] = generate(generator, recorder, 40);
  told["host_metrics"] = recorder.metrics;
  return told;
}

Json run_script(const hexad::plugin::LoadedPlugin& plugin, const Json& plugin_config) {
  using hexad::plugin::Kind;
  if (plugin.kind() == Kind::loss) return run_loss(plugin, plugin_config);
  if (plugin.kind() == Kind::backend) return run_backend(plugin, plugin_config);
  if (plugin.kind() == Kind::generator) return run_generator(plugin, plugin_config);
  return run_environment(plugin, plugin_config);
}

}  // namespace abi_test
