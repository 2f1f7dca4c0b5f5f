// A generator plugin behind its vtable, beside the backend that sends it weights, on the run's device.
#pragma once
#include <deque>
#include <map>

#include "tests/plugins/backend/harness.hpp"

namespace refit_test {

using backend_test::Instance;
using backend_test::json;

struct Sample {
  std::vector<int64_t> prompt;
  uint64_t seed = 0;
};

struct Drawn {
  std::vector<int64_t> tokens;
  std::vector<float> logprobs;
  std::vector<int64_t> versions;  // of the weights, in the order of spans
};

class Generator {
 public:
  explicit Generator(const json& section, const std::string& plugin = "native")
      : vtable_(*backend_test::description_of(plugin).generator) {
    config_.document = section;
    check(vtable_.create(&backend_test::host(), &call_, &config_, &self_));
  }
  ~Generator() {
    if (self_) vtable_.destroy(self_);
  }
  Generator(const Generator&) = delete;

  // The backend's current weights, in buckets of about so many bytes.
  void refit(Instance& backend, const hexad_backend_vtable& from, int64_t version, int64_t bucket_bytes) {
    const hexad_weights_request request{HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes),
                                        HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, 0, bucket_bytes};
    check(vtable_.update_begin(self_, &call_, version));
    backend.check(from.weights_begin(backend.self(), backend.call(), &request));
    for (;;) {
      hexad_weight_list bucket{};
      bucket.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
      backend.check(from.weights_next(backend.self(), backend.call(), &bucket));
      if (bucket.count == 0) break;
      for (int64_t i = 0; i < bucket.count; ++i)
        CHECK(bucket.slices[i].tensor->device.device_type == runtime_test::device().device_type);
      check(vtable_.update_bucket(self_, &call_, &bucket));
    }
    from.weights_end(backend.self());
    check(vtable_.update_end(self_, &call_, 1));
  }

  // Frees the keys and values, and the weights too; an update must follow.
  void sleep_and_wake() {
    check(vtable_.sleep(self_, &call_, 2));
    check(vtable_.wake(self_, &call_));
  }

  std::vector<Drawn> run(const std::vector<Sample>& samples, int64_t max_new_tokens, double temperature) {
    std::deque<std::vector<int32_t>> prompts;
    std::deque<hexad_request> requests;
    std::vector<const hexad_request*> pointers;
    for (const Sample& sample : samples) {
      const auto& prompt = prompts.emplace_back(sample.prompt.begin(), sample.prompt.end());
      hexad_request& request = requests.emplace_back();
      request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
      request.flags = HEXAD_REQUEST_IGNORE_EOS;
      request.id = request.group = requests.size() - 1;
      request.prompt = prompt.data(), request.prompt_size = static_cast<int64_t>(prompt.size());
      request.max_new_tokens = max_new_tokens;
      request.seed = sample.seed;
      request.temperature = temperature, request.top_p = 1;
      pointers.push_back(&request);
    }
    check(vtable_.submit(self_, &call_, pointers.data(), static_cast<int64_t>(pointers.size())));
    std::vector<Drawn> drawn(samples.size());
    for (size_t ended = 0; ended < samples.size();) {
      const hexad_completion* events[16];
      int64_t count = 0;
      check(vtable_.poll(self_, &call_, events, 16, 1000, &count));
      for (int64_t i = 0; i < count; ++i) ended += take(*events[i], drawn);
      vtable_.release(self_, events, count);
    }
    return drawn;
  }

 private:
  void check(hexad_code code) { REQUIRE_MESSAGE(code == HEXAD_OK, call_.error); }

  static bool take(const hexad_completion& event, std::vector<Drawn>& drawn) {
    if (event.finish == HEXAD_FINISH_NONE) return false;
    REQUIRE_MESSAGE(event.finish == HEXAD_FINISH_LENGTH, (event.error ? event.error : "ended otherwise"));
    Drawn& to = drawn.at(event.id);
    to.tokens.assign(event.tokens, event.tokens + event.count);
    to.logprobs.assign(event.logprobs, event.logprobs + event.count);
    for (int64_t i = 0; i < event.num_spans; ++i) to.versions.push_back(event.spans[i].version);
    return true;
  }

  const hexad_generator_vtable& vtable_;
  hexad_config config_;
  hexad_call call_;
  hexad_generator* self_ = nullptr;
};

}  // namespace refit_test
