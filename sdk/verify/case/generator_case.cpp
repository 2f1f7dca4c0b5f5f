#include "sdk/verify/case/generator_case.hpp"

#include <algorithm>
#include <chrono>

#include <hexad/names.hpp>

namespace hexad::verify {
namespace {

constexpr int32_t kPrompt[] = {1, 2, 3};
constexpr int64_t kRoom = 8;  // for events of one poll

// "" if they are as abi.h has them.
std::string fault_of_columns(const hexad_completion& event, int64_t prompt_tokens) {
  if (!HEXAD_HAS(&event, num_columns)) return "";
  for (int64_t i = 0; i < event.num_columns; ++i) {
    const hexad_named_tensor& column = event.columns[i];
    if (!column.name || !*column.name) return "a column has no name";
    const std::string name = "'" + std::string(column.name) + "' ";
    const sdk::KnownTensor* known = sdk::known_tensor(column.name);
    if (known ? known->source != sdk::Source::generator : !sdk::is_own_name(column.name))
      return name + "is no column of a generator's" + sdk::meant_name(column.name) + sdk::kOwnNames;
    if (!column.tensor || column.axis != HEXAD_AXIS_TOKEN) return name + "is no tensor with the axis HEXAD_AXIS_TOKEN";
    if (column.tensor->device.device_type != kDLCPU || column.tensor->strides)
      return name + "is not contiguous in host memory, without strides";
    const int64_t tokens = prompt_tokens + event.count;
    if (column.tensor->ndim < 1 || column.tensor->shape[0] != tokens)
      return name + "wants " + std::to_string(tokens) + " tokens of prompt and completion first";
  }
  return "";
}

void take(const hexad_completion& event, const std::vector<hexad_request>& requests, Answers& answers) {
  const auto asked = [&](const hexad_request& request) { return request.id == event.id; };
  const auto request = std::find_if(requests.begin(), requests.end(), asked);
  if (request == requests.end()) {
    answers.stranger = "an event names request " + std::to_string(event.id) + ", which was never submitted";
    return;
  }
  Answer& answer = answers.by_id[event.id];
  answer.finals += event.finish != HEXAD_FINISH_NONE;
  answer.finish = event.finish;
  answer.tokens.assign(event.tokens, event.tokens + event.count);
  answer.logprobs.assign(event.logprobs, event.logprobs + event.count);
  answer.spans.assign(event.spans, event.spans + event.num_spans);
  if (event.error) answer.error = event.error;
  if (event.finish != HEXAD_FINISH_NONE) answer.bad_column = fault_of_columns(event, request->prompt_size);
}

bool all_ended(const Answers& answers, size_t requests) {
  return answers.by_id.size() == requests && std::all_of(answers.by_id.begin(), answers.by_id.end(),
                                                         [](const auto& entry) { return entry.second.finals > 0; });
}

}  // namespace

std::string Answers::bits() const {
  std::string text;
  for (const auto& [id, answer] : by_id) {
    text += std::to_string(id) + ":" + std::to_string(answer.finish) + ":";
    text.append(reinterpret_cast<const char*>(answer.tokens.data()), answer.tokens.size() * sizeof(int32_t));
    text.append(reinterpret_cast<const char*>(answer.logprobs.data()), answer.logprobs.size() * sizeof(float));
  }
  return text;
}

hexad_request make_request(uint64_t id, double temperature, uint64_t seed, int64_t max_new_tokens) {
  hexad_request request{};
  request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
  request.flags = temperature == 0 ? HEXAD_REQUEST_GREEDY : 0;
  request.id = request.group = id;
  request.prompt = kPrompt;
  request.prompt_size = std::size(kPrompt);
  request.max_new_tokens = max_new_tokens;
  request.seed = seed;
  request.temperature = temperature;
  request.top_p = 1;
  return request;
}

Answers run_requests(const Subject& subject, void* instance, const std::vector<hexad_request>& requests,
                     uint64_t cancel_id, const CallOptions& options) {
  const hexad_generator_vtable& vtable = *subject.desc->generator;
  auto* self = static_cast<hexad_generator*>(instance);
  Answers answers;
  std::vector<const hexad_request*> pointers;
  for (const hexad_request& request : requests) pointers.push_back(&request);
  const auto submitted = subject.engine->call(options);
  answers.code = vtable.submit(self, submitted->handle(), pointers.data(), static_cast<int64_t>(pointers.size()));
  answers.text = submitted->text();
  if (answers.code != HEXAD_OK) return answers;
  for (int again = 0; cancel_id && again < 2; ++again) {
    const auto call = subject.engine->call();
    answers.code = vtable.cancel(self, call->handle(), &cancel_id, 1);
    if (answers.code != HEXAD_OK) answers.text = call->text();
  }
  const auto poll = [&](int64_t timeout_ms) {
    const hexad_completion* events[2 * kRoom] = {};  // room for one that does not heed max_events
    int64_t count = 0;
    const auto call = subject.engine->call(options);
    answers.code = vtable.poll(self, call->handle(), events, kRoom, timeout_ms, &count);
    answers.text = call->text();
    if (answers.code == HEXAD_OK && count > kRoom) {
      answers.code = HEXAD_INTERNAL;
      answers.text = "poll with room for 8 events gave " + std::to_string(count);
    }
    for (int64_t i = 0; answers.code == HEXAD_OK && i < count; ++i) take(*events[i], requests, answers);
    if (answers.code == HEXAD_OK && count > 0) vtable.release(self, events, count);
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(subject.patience_s);
  while (answers.code == HEXAD_OK && !all_ended(answers, requests.size()) && std::chrono::steady_clock::now() < end)
    poll(100);
  if (answers.code == HEXAD_OK) poll(0);  // for an event too many
  return answers;
}

}  // namespace hexad::verify
