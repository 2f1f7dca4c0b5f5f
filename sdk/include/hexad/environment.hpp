// An environment plugin as a C++ class (ABI 1.1: hexad_add_plugin(... TARGET_MINOR 1)):
//
//   struct MyReward {
//     static constexpr const char* components[] = {"format", "answer"};   // optional: parts of the reward
//     MyReward(const Call& call, const Config& config);
//     void score(const Call& call, const SampleView& sample, ScoreOut& out);   // one sample
//   };
//   HEXAD_CPP_ENVIRONMENT(MyReward, "my_reward", "1.0.0", "Apache-2.0")
//
// In place of score, for rewards that look at whole groups or send batches elsewhere:
//   void score_all(const Call& call, std::span<const hexad_sample* const> samples, hexad_scores& out);
// Optional: static constexpr uint64_t caps.
//
// Several turns (ABI 1.3: TARGET_MINOR 3): `out.reply(text)` says something back, and the sample goes on with another
// response; `out.keep(state)` keeps a text with the sample, which sample.state() has at its next turn.
//
// Votes (ABI 1.4: TARGET_MINOR 4): `out.answer(text)` tells what was read out of the response, "" for nothing.
#pragma once
#include <hexad/tensor.hpp>

#include <deque>
#include <string>
#include <string_view>

#if HEXAD_TARGET_MINOR >= 1
namespace hexad::sdk {

// One response to a prompt; the texts have a NUL behind them.
class SampleView {
 public:
  explicit SampleView(const hexad_sample* sample) : sample_(sample) {}
  const hexad_sample& raw() const { return *sample_; }

  std::string_view prompt() const { return {sample_->prompt, sample_->prompt_size}; }
  std::string_view response() const { return {sample_->response, sample_->response_size}; }
  std::string_view ground_truth() const { return {sample_->ground_truth, sample_->ground_truth_size}; }
  std::string_view metadata() const { return {sample_->metadata, sample_->metadata_size}; }  // a JSON object
  std::span<const int64_t> response_ids() const {
    return {sample_->tokens + sample_->prompt_tokens, static_cast<size_t>(sample_->response_tokens)};
  }
  bool truncated() const { return sample_->finish == HEXAD_FINISH_LENGTH; }
#if HEXAD_TARGET_MINOR >= 3
  int64_t turn() const { return sample_->turn; }                                    // responses before this one
  std::string_view state() const { return {sample_->state, sample_->state_size}; }  // "" at the first turn
#endif

 private:
  const hexad_sample* sample_;
};

// Where the scores of one sample go; all start as zero.
class ScoreOut {
 public:
  // `texts` outlive the call.
  ScoreOut(hexad_scores* out, int64_t sample, int64_t count, std::deque<std::string>& texts)
      : out_(out), sample_(sample), count_(count), texts_(texts) {}

  float& reward() { return out_->rewards[sample_]; }
  float& component(size_t index) { return out_->components[static_cast<int64_t>(index) * count_ + sample_]; }
  // It could not be scored: it leaves the training and is counted.
  void set_invalid() { out_->invalid[sample_] = 1; }
#if HEXAD_TARGET_MINOR >= 3
  // A message back, after which the sample goes on: without one it has ended. `role`: static, for the chat template.
  void reply(std::string content, const char* role = "user") {
    hexad_reply& reply = out_->replies[sample_];
    const std::string& kept = texts_.emplace_back(std::move(content));
    reply.content = kept.c_str(), reply.content_size = kept.size(), reply.role = role;
  }
  // For the sample's next turn.
  void keep(std::string state) {
    hexad_reply& reply = out_->replies[sample_];
    const std::string& kept = texts_.emplace_back(std::move(state));
    reply.state = kept.c_str(), reply.state_size = kept.size();
  }
#endif
#if HEXAD_TARGET_MINOR >= 4
  // Of every sample or of none.
  void answer(std::string text) {
    const std::string& kept = texts_.emplace_back(std::move(text));
    out_->answers[sample_] = {kept.c_str(), kept.size()};
  }
#endif

 private:
  hexad_scores* out_;
  int64_t sample_, count_;
  std::deque<std::string>& texts_;
};

// An environment and the texts of its newest replies and answers, which the host reads after the call.
template <typename T>
struct Speaking {
  Speaking(const Call& call, const Config& config) : object(call, config) {}
  T object;
  std::deque<std::string> texts;
};

template <typename T>
class EnvironmentThunks {
  static constexpr bool kHasComponents = requires { T::components; };
  static constexpr bool kHasCaps = requires { T::caps; };
  static constexpr bool kWhole = requires { &T::score_all; };

  static hexad_code score(hexad_environment* self, hexad_call* call, const hexad_sample* const* samples, int64_t count,
                          hexad_scores* out) {
    return on_box<Speaking<T>>(self, call, [&](Speaking<T>& speaking, const Call& service) {
      if constexpr (kWhole) {
        speaking.object.score_all(service, std::span(samples, static_cast<size_t>(count)), *out);
      } else {
        speaking.texts.clear();
        for (int64_t i = 0; i < count; ++i) {
          ScoreOut of_sample(out, i, count, speaking.texts);
          speaking.object.score(service, SampleView(samples[i]), of_sample);
        }
      }
    });
  }

  static constexpr hexad_environment_vtable make() {
    hexad_environment_vtable table{};
    table.struct_size = HEXAD_STRUCT_SIZE(hexad_environment_vtable, score);
    if constexpr (kHasComponents) table.num_components = static_cast<uint32_t>(std::size(T::components));
    if constexpr (kHasComponents) table.components = std::data(T::components);
    if constexpr (kHasCaps) table.caps = T::caps;
    table.create = create_box<Speaking<T>, hexad_environment>;
    table.destroy = destroy_box<Speaking<T>, hexad_environment>;
    table.score = score;
    return table;
  }

 public:
  static constexpr hexad_environment_vtable table = make();
};

}  // namespace hexad::sdk

// At namespace scope outside of any namespace, once per shared object.
#define HEXAD_CPP_ENVIRONMENT(type, name, version, license) \
  HEXAD_ENVIRONMENT_PLUGIN(name, version, license, (::hexad::sdk::EnvironmentThunks<type>::table))
#endif
