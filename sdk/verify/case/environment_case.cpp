#include "sdk/verify/case/environment_case.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "sdk/verify/guarded.hpp"

namespace hexad::verify {
namespace {

constexpr char kPrompt[] = "What is 6 * 7?";
constexpr int64_t kPromptTokens = 4;

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

hexad_sample to_abi(const SampleText& text, const std::vector<int64_t>& tokens) {
  hexad_sample sample{};
  sample.struct_size = HEXAD_STRUCT_SIZE(hexad_sample, state_size);
  sample.finish = text.truncated ? HEXAD_FINISH_LENGTH : HEXAD_FINISH_STOP;
  sample.group = text.group;
  sample.prompt = kPrompt;
  sample.prompt_size = sizeof kPrompt - 1;
  sample.response = text.response.c_str();
  sample.response_size = text.response.size();
  sample.ground_truth = text.ground_truth.c_str();
  sample.ground_truth_size = text.ground_truth.size();
  sample.metadata = text.metadata.c_str();
  sample.metadata_size = text.metadata.size();
  sample.tokens = tokens.data();
  sample.prompt_tokens = kPromptTokens;
  sample.response_tokens = static_cast<int64_t>(tokens.size()) - kPromptTokens;
  sample.turn = text.turn;
  sample.state = text.state.c_str();
  sample.state_size = text.state.size();
  return sample;
}

// A token a byte.
std::vector<int64_t> tokens_of(const SampleText& text) {
  std::vector<int64_t> tokens(kPromptTokens, 1);
  tokens.insert(tokens.end(), text.response.begin(), text.response.end());
  return tokens;
}

std::string repeated(std::string_view part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

std::vector<SampleText> make_samples() {
  return {{0, "42", "42"},
          {0, "I do not know.", "42"},
          {1, "The answer is \\boxed{42}.", "42"},
          {1, "<think>six times seven</think><answer>42</answer>", "42"},
          {2, "6 * 7 = 42", "42", R"({"target": 42, "numbers": [6, 7]})"},
          {2, "41 is what I", "42", R"({"target": 42, "numbers": [6, 7]})", true},
          {3, "Vierzig und zwei \xC3\xA4\xC3\xB6\xC3\xBC", "zweiundvierzig"},
          {3, "zweiundvierzig", "zweiundvierzig"}};
}

std::vector<SampleText> make_odd_samples() {
  const std::string big = repeated("so then 42 and ", 70'000);  // 1 MB
  std::vector<SampleText> odd = {
      {0, ""},
      {0, "", ""},
      {0, big},
      {0, "42", big},
      {0, std::string("4\0002\0", 4)},
      {0, "\xFF\xFE\xC3 42 \xED\xA0\x80"},
      {0, repeated("(", 100'000)},
      {0, repeated("\\boxed{", 50'000)},
      {0, repeated("9", 20'000)},
      {0, "-1e999999999 / 0 = nan inf"},
      {0, "42", "42", "{\"deep\": " + repeated("[", 200) + repeated("]", 200) + "}"},
      {0, "42", "42", R"({"target": "text", "numbers": {}, "": null})"},
      {0, "<answer></answer><answer>"},
  };
  for (size_t i = 0; i < odd.size(); ++i) odd[i].group = i;
  return odd;
}

std::string ScoreResult::bits() const {
  std::string text;
  for (size_t i = 0; i < rewards.size(); ++i) text += bits_of(i);
  return text;
}

std::string ScoreResult::bits_of(size_t sample) const {
  std::string text;
  append(text, invalid[sample]);
  if (invalid[sample]) return text;  // what else stands there means nothing
  append(text, rewards[sample]);
  for (size_t at = sample; at < components.size(); at += rewards.size()) append(text, components[at]);
  for (const auto* said : {&replies, &roles, &states, &answers}) text += (*said)[sample].value_or("") + '\0';
  return text;
}

ScoreResult score(const Subject& subject, void* instance, const std::vector<SampleText>& samples,
                  const CallOptions& options, bool grown) {
  const hexad_environment_vtable& vtable = *environment_of(*subject.desc);
  const size_t count = samples.size();
  std::vector<std::vector<int64_t>> tokens;
  for (const SampleText& sample : samples) tokens.push_back(tokens_of(sample));
  std::deque<Grown<hexad_sample>> abi;
  std::vector<const hexad_sample*> pointers;
  for (size_t i = 0; i < count; ++i) pointers.push_back(abi.emplace_back(to_abi(samples[i], tokens[i]), grown).get());

  Guarded rewards(count * sizeof(float)), invalid(count), components(count * vtable.num_components * sizeof(float)),
      replies(count * sizeof(hexad_reply)), answers(count * sizeof(hexad_answer));
  Grown<hexad_scores> out({HEXAD_STRUCT_SIZE(hexad_scores, answers), 0, static_cast<float*>(rewards.data()),
                           static_cast<uint8_t*>(invalid.data()), static_cast<float*>(components.data()),
                           static_cast<hexad_reply*>(replies.data()), static_cast<hexad_answer*>(answers.data())},
                          grown);
  const auto call = subject.engine->call(options);
  ScoreResult result;
  result.code = vtable.score(static_cast<hexad_environment*>(instance), call->handle(), pointers.data(),
                             static_cast<int64_t>(count), out.get());
  result.text = call->text();
  const auto take = [](Guarded& from, auto& to) {
    using T = std::remove_reference_t<decltype(to[0])>;
    const T* values = static_cast<const T*>(from.data());
    to.assign(values, values + from.size() / sizeof(T));
  };
  take(rewards, result.rewards);
  take(invalid, result.invalid);
  take(components, result.components);
  const auto text = [](const char* from, uint64_t size) {
    return from ? std::optional<std::string>(std::in_place, from, size) : std::nullopt;
  };
  for (auto* said : {&result.replies, &result.roles, &result.states, &result.answers}) said->resize(count);
  for (size_t i = 0; result.code == HEXAD_OK && i < count; ++i) {
    const hexad_reply& reply = static_cast<const hexad_reply*>(replies.data())[i];
    result.replies[i] = text(reply.content, reply.content_size);
    result.roles[i] = text(reply.role, reply.role ? std::strlen(reply.role) : 0);
    result.states[i] = text(reply.state, reply.state_size);
    const hexad_answer& answer = static_cast<const hexad_answer*>(answers.data())[i];
    result.answers[i] = text(answer.text, answer.size);
  }
  if (!rewards.intact()) result.damage = "outside of rewards";
  if (!invalid.intact()) result.damage = "outside of invalid";
  if (!components.intact()) result.damage = "outside of components";
  if (!replies.intact()) result.damage = "outside of replies";
  if (!answers.intact()) result.damage = "outside of answers";
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] != tokens_of(samples[i])) result.damage = "to the tokens of sample " + std::to_string(i);
  }
  return result;
}

}  // namespace hexad::verify
