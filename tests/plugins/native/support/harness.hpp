// A generator in this process, behind the engine's own host table.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "core/plugin/plugin_config.hpp"
#include "plugins/native/generator.hpp"
#include "tests/plugins/native/support/device_runtime.hpp"

namespace native_test {

using Json = hexad::plugin::PluginConfig::Json;

// A request with everything that it points to.
struct Ask {
  uint64_t id = 0;
  std::vector<int32_t> prompt;
  int64_t max_new_tokens = 12;
  uint64_t group = 0, seed = 0;
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  std::vector<int32_t> stop_token_ids = {};
  std::vector<std::string> stop_strings = {};
  uint32_t flags = HEXAD_REQUEST_IGNORE_EOS;
};

struct Answer {
  int32_t finish = HEXAD_FINISH_NONE;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::pair<int64_t, int64_t>> spans;  // start, version
  std::string error;
  std::vector<int64_t> routes_shape;  // of the column routed_experts; empty without it
  std::vector<int16_t> routes;

  // Same tokens, and the same bits of every log-prob.
  bool operator==(const Answer& other) const {
    return finish == other.finish && tokens == other.tokens && logprobs.size() == other.logprobs.size() &&
           std::memcmp(logprobs.data(), other.logprobs.data(), logprobs.size() * sizeof(float)) == 0;
  }
};

// The text of a token in these tests: a letter or two.
inline std::string letters(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (id >= 26) text += static_cast<char>('A' + (id / 26) % 26);
    text += static_cast<char>('a' + id % 26);
  }
  return text;
}

// Calls `take` with a bucket of one weight, or of a slice of it from `offsets` on when `global_shape` is given.
template <typename Take>
void as_bucket(const std::string& name, const at::Tensor& tensor, std::vector<int64_t> global_shape,
               std::vector<int64_t> offsets, Take&& take) {
  const at::Tensor data = tensor.contiguous();
  std::vector<int64_t> shape = data.sizes().vec();
  if (global_shape.empty()) global_shape = shape;
  if (offsets.empty()) offsets.assign(shape.size(), 0);
  const auto code = static_cast<uint8_t>(data.scalar_type() == at::kBFloat16 ? kDLBfloat
                                         : data.is_floating_point()          ? kDLFloat
                                                                             : kDLInt);
  DLTensor view{data.data_ptr(),
                {kDLCPU, 0},
                static_cast<int32_t>(shape.size()),
                {code, static_cast<uint8_t>(8 * data.element_size()), 1},
                shape.data(),
                nullptr,
                0};
  const hexad_weight_slice slice{name.c_str(), &view,     global_shape.data(), offsets.data(),
                                 shape.data(), view.ndim, view.dtype};
  const hexad_weight_list bucket{HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
  take(bucket);
}

class Harness {
 public:
  // `section`: policy.generation with model_name and so on.
  explicit Harness(const Json& section, at::Device device = at::kCPU)
      : config_("policy.generation", section), call_(context_, "test") {
    if (device.is_cuda()) context_.device = {kDLCUDA, device.index()};
    context_.detokenize = [](std::span<const int32_t> ids) { return letters(ids); };
    generator_ = std::make_unique<hexad::native::Generator>(service(), hexad::sdk::Config(service(), config_.handle()));
  }

  hexad::native::Generator& operator*() { return *generator_; }
  hexad::native::Generator* operator->() { return generator_.get(); }
  hexad::plugin::CallContext& context() { return context_; }
  hexad::sdk::Call service() { return {hexad::plugin::host_table(device_runtime()), call_.handle()}; }

  void submit(const std::vector<Ask>& asks) {
    std::deque<hexad_request> requests;
    std::deque<std::vector<const char*>> strings;
    std::vector<const hexad_request*> pointers;
    for (const Ask& ask : asks) {
      std::vector<const char*>& stops = strings.emplace_back();
      for (const std::string& text : ask.stop_strings) stops.push_back(text.c_str());
      requests.push_back({.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings),
                          .flags = ask.flags,
                          .id = ask.id,
                          .group = ask.group,
                          .prompt = ask.prompt.data(),
                          .prompt_size = static_cast<int64_t>(ask.prompt.size()),
                          .max_new_tokens = ask.max_new_tokens,
                          .seed = ask.seed,
                          .temperature = ask.temperature,
                          .top_p = ask.top_p,
                          .min_p = ask.min_p,
                          .top_k = ask.top_k,
                          .stop_token_ids = ask.stop_token_ids.data(),
                          .num_stop_token_ids = static_cast<int64_t>(ask.stop_token_ids.size()),
                          .stop_strings = stops.data(),
                          .num_stop_strings = static_cast<int64_t>(stops.size())});
      pointers.push_back(&requests.back());
    }
    generator_->submit(service(), pointers);
    running_ += asks.size();
  }

  // One poll. Final events go to `answers`, partial ones to `partial`.
  int64_t poll(int64_t timeout_ms = 0) {
    std::vector<const hexad_completion*> events(64);
    const int64_t count = generator_->poll(service(), events, timeout_ms);
    for (int64_t i = 0; i < count; ++i) take(*events[i]);
    generator_->release({events.data(), static_cast<size_t>(count)});
    return count;
  }

  // Polls until every request has ended.
  std::map<uint64_t, Answer>& run() {
    while (running_ > 0) poll(1000);
    return answers;
  }
  std::map<uint64_t, Answer> run(const std::vector<Ask>& asks) {
    answers.clear();
    submit(asks);
    return run();
  }

  // A whole update in one bucket.
  void update(const std::map<std::string, at::Tensor>& weights, int64_t version) {
    generator_->update_begin(service(), version);
    for (const auto& [name, tensor] : weights) send(name, tensor);
    generator_->update_end(service(), true);
  }

  // One weight, or a slice of it: as_bucket().
  void send(const std::string& name, const at::Tensor& tensor, const std::vector<int64_t>& global_shape = {},
            const std::vector<int64_t>& offsets = {}) {
    as_bucket(name, tensor, global_shape, offsets,
              [&](const hexad_weight_list& bucket) { generator_->update_bucket(service(), bucket); });
  }

  std::map<uint64_t, Answer> answers;
  std::vector<std::pair<uint64_t, Answer>> partial;

 private:
  void take(const hexad_completion& event) {
    Answer answer;
    answer.finish = event.finish;
    answer.tokens.assign(event.tokens, event.tokens + event.count);
    answer.logprobs.assign(event.logprobs, event.logprobs + event.count);
    for (int64_t i = 0; i < event.num_spans; ++i)
      answer.spans.emplace_back(event.spans[i].start, event.spans[i].version);
    if (event.error) answer.error = event.error;
    for (int64_t i = 0; i < event.num_columns; ++i) {
      const hexad_named_tensor& column = event.columns[i];
      REQUIRE(std::string(column.name) == "routed_experts");
      CHECK(column.axis == HEXAD_AXIS_TOKEN);
      answer.routes_shape.assign(column.tensor->shape, column.tensor->shape + column.tensor->ndim);
      const auto* experts = HEXAD_DATA(const int16_t, column.tensor);
      answer.routes.assign(experts, experts + answer.routes_shape[0] * answer.routes_shape[1] * answer.routes_shape[2]);
    }
    if (event.finish == HEXAD_FINISH_NONE) {
      partial.emplace_back(event.id, std::move(answer));
      return;
    }
    CHECK_MESSAGE(answers.emplace(event.id, std::move(answer)).second, "two last events of one request");
    --running_;
  }

  hexad::plugin::PluginConfig config_;
  hexad::plugin::CallContext context_;
  hexad::plugin::Call call_;
  std::unique_ptr<hexad::native::Generator> generator_;
  size_t running_ = 0;
};

// The text of the sdk::Error that `function` throws; fails the test if it throws none.
template <typename Function>
std::string refusal(hexad_code code, Function&& function) {
  try {
    function();
  } catch (const hexad::sdk::Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("nothing was thrown");
  return {};
}

}  // namespace native_test
