// A whole generator on one page: draws tokens from the unigram model that examples/backend trains. It shows every duty
// of a generator: requests that end with exactly one event, draws keyed by (seed, position), weights that change all at
// once.
#include <hexad/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace {

using namespace hexad::sdk;

struct Event {
  hexad_completion completion{};
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  hexad_version_span span{};
};

// A uniform number in [0, 1) that depends on (seed, position) alone: splitmix64.
double uniform(uint64_t seed, uint64_t position) {
  uint64_t x = seed + 0x9E3779B97F4A7C15ull * (position + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1.0p-53;
}

class UnigramSampler {
 public:
  UnigramSampler(const Call&, const Config& config)
      : vocab_(config.get<int64_t>("vocab_size", 0)),
        max_length_(config.get<int64_t>("max_total_sequence_length", 1024)) {
    if (vocab_ < 1)
      fail(HEXAD_INVALID_ARGUMENT, "plugin_config.vocab_size: got %lld, wanted the tokens of the model's vocabulary",
           static_cast<long long>(vocab_));
    theta_.resize(static_cast<size_t>(vocab_));
  }

  void describe(const Call&, hexad_generator_info& info) {
    info.max_sequences = 1;
    info.max_model_len = max_length_;
    info.weight_form = HEXAD_FORM_FULL;
  }

  // All are drawn at once: nothing here takes long enough to be spread over polls.
  void submit(const Call&, std::span<const hexad_request* const> requests) {
    const std::lock_guard lock(mutex_);
    for (const hexad_request* request : requests)
      if (request->top_k != 0 || request->top_p < 1 || request->min_p > 0 || request->num_stop_strings > 0)
        fail(HEXAD_UNIMPLEMENTED, "unigram_sampler has no top_k, top_p, min_p and no stop strings: leave them off");
    for (const hexad_request* request : requests) ready_.push_back(draw(*request));
  }

  int64_t poll(const Call&, std::span<const hexad_completion*> events, int64_t) {
    const std::lock_guard lock(mutex_);
    int64_t count = 0;
    while (!ready_.empty() && count < static_cast<int64_t>(events.size())) {
      std::unique_ptr<Event> event = std::move(ready_.front());
      ready_.pop_front();
      const hexad_completion* completion = events[static_cast<size_t>(count++)] = &event->completion;
      lent_[completion] = std::move(event);
    }
    return count;
  }

  void release(std::span<const hexad_completion* const> events) {
    const std::lock_guard lock(mutex_);
    for (const hexad_completion* event : events) lent_.erase(event);
  }

  void cancel(const Call&, std::span<const uint64_t>) {}  // every request has its event already

  void update_begin(const Call&, int64_t version) { arriving_.clear(), arriving_version_ = version; }
  void update_bucket(const Call&, const hexad_weight_list& bucket) {
    for (int64_t i = 0; i < bucket.count; ++i) {
      const hexad_weight_slice& slice = bucket.slices[i];
      if (std::string_view(slice.name) != "unigram.theta" || slice.ndim != 1 || slice.shape[0] != vocab_)
        fail(HEXAD_INVALID_ARGUMENT, "weight update: got %s, wanted unigram.theta [%lld]", slice.name,
             static_cast<long long>(vocab_));
      arriving_.assign(HEXAD_F32(slice.tensor), HEXAD_F32(slice.tensor) + vocab_);
    }
  }
  void update_end(const Call&, bool commit) {
    const std::lock_guard lock(mutex_);
    if (!commit) return;
    if (arriving_.empty()) fail(HEXAD_FAILED_PRECONDITION, "weight update: unigram.theta did not arrive");
    theta_.swap(arriving_);
    version_ = arriving_version_;
  }

 private:
  std::unique_ptr<Event> draw(const hexad_request& request) const {
    auto event = std::make_unique<Event>();
    const bool greedy = (request.flags & HEXAD_REQUEST_GREEDY) || request.temperature == 0;
    const double temperature = greedy ? 1 : request.temperature;
    double sum = 0;
    for (const float t : theta_) sum += std::exp(t / temperature);
    int32_t finish = HEXAD_FINISH_LENGTH;
    const int64_t most = std::min(request.max_new_tokens, max_length_ - request.prompt_size);
    while (finish != HEXAD_FINISH_STOP && static_cast<int64_t>(event->tokens.size()) < most) {
      size_t token = 0;
      if (greedy) {
        token = static_cast<size_t>(std::max_element(theta_.begin(), theta_.end()) - theta_.begin());
      } else {
        double rest = uniform(request.seed, static_cast<uint64_t>(request.prompt_size) + event->tokens.size()) * sum;
        while (token + 1 < theta_.size() && (rest -= std::exp(theta_[token] / temperature)) >= 0) ++token;
      }
      event->tokens.push_back(static_cast<int32_t>(token));
      event->logprobs.push_back(static_cast<float>(theta_[token] / temperature - std::log(sum)));
      const int32_t* stops = request.stop_token_ids;
      if (std::find(stops, stops + request.num_stop_token_ids, event->tokens.back()) !=
          stops + request.num_stop_token_ids)
        finish = HEXAD_FINISH_STOP;
    }
    event->span = {0, version_};
    event->completion = {HEXAD_STRUCT_SIZE(hexad_completion, error),
                         finish,
                         request.id,
                         event->tokens.data(),
                         event->logprobs.data(),
                         static_cast<int64_t>(event->tokens.size()),
                         &event->span,
                         event->tokens.empty() ? 0 : 1,
                         nullptr};
    return event;
  }

  int64_t vocab_, max_length_;
  std::vector<float> theta_, arriving_;
  int64_t version_ = 0, arriving_version_ = 0;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Event>> ready_;
  std::unordered_map<const hexad_completion*, std::unique_ptr<Event>> lent_;
};

}  // namespace

HEXAD_CPP_GENERATOR(UnigramSampler, "unigram_sampler", "1.0.0", "Apache-2.0")
