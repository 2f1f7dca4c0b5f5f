// The body of a reward server's answer: read as a reward, as several, and as a judge's completion.
#include <cmath>
#include <cstdlib>

#include "plugins/environment/http_reward/judge.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
using namespace http_reward;

namespace {

JudgeSettings judge(const char* score_regex, const char* score_json) {
  JudgeSettings settings;
  settings.model = "m", settings.prompt = "{response}", settings.body = "{}";
  settings.score_regex = score_regex, settings.score_json = score_json;
  settings.score_max = 10;
  return settings;
}

// What the plugin takes for no reward is an answer; all else is a finding.
template <typename Work>
void take(Work&& work) {
  try {
    work();
  } catch (const Unusable&) {
  }
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Judge by_regex(judge("Score: *([0-9.]+)", "")), by_json(judge("", "/score"));
  const std::string_view body = fuzz::text_of(data, size);
  take([&] {
    const nlohmann::ordered_json value = json_of(body);
    const auto one = [&](const nlohmann::ordered_json& each) {
      take([&] {
        const Answer answer = answer_of(each, 7);
        require(!answer.reward || std::isfinite(*answer.reward));
      });
    };
    one(value);
    if (value.is_array())
      for (const auto& each : value) one(each);
  });
  for (const Judge* each : {&by_regex, &by_json}) {
    take([&] {
      const float reward = each->reward(body);
      require(reward >= 0 && reward <= 1);
    });
  }
  return 0;
}
