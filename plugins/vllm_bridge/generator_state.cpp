// The generator's pause and sleep.
#include <fmt/format.h>

#include "plugins/vllm_bridge/generator.hpp"

namespace hexad::vllm {

void Generator::halt() {
  loop_.run([&] { fleet_.hold(); });
  std::vector<Target> targets = control_.up();
  for (const Target& target : targets) {
    if (!target.dev_mode) loop_.run([&] { fleet_.recall(target.index); });
  }
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post_or_fail(targets, "/pause?mode=keep&clear_cache=false", "{}", settings_.deadlines.control);
}

void Generator::unhalt() {
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post_or_fail(targets, "/resume", "{}", settings_.deadlines.control);
  loop_.run([&] { fleet_.release(); });
}

void Generator::pause(const sdk::Call&) {
  if (!std::exchange(paused_, true)) halt();
}

void Generator::resume(const sdk::Call&) {
  if (std::exchange(paused_, false)) unhalt();
}

void Generator::sleep(const sdk::Call& call, int32_t level) {
  if (level != 1 && level != 2) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "sleep: got level %d, wanted 1 (free the KV cache) or 2 (free the weights too)",
              level);
  }
  if (std::exchange(asleep_, true)) return;
  const bool held = std::exchange(without_weights_, without_weights_ || level == 2);  // by a sleep before
  loop_.run([&] {
    if (!held) fleet_.hold();
    for (const auto& server : fleet_.servers()) fleet_.recall(server->index);
  });
  std::vector<Target> targets = control_.takes_weights();
  const bool all = std::all_of(targets.begin(), targets.end(), [](const Target& t) { return t.sleep_mode; });
  if (!all) call.log(HEXAD_LOG_DEBUG, "a vLLM server has no sleep mode: it keeps its memory while the policy computes");
  std::erase_if(targets, [](const Target& target) { return !target.sleep_mode; });
  control_.post_or_fail(targets, fmt::format("/sleep?level={}", level), "{}", settings_.deadlines.control);
}

void Generator::wake(const sdk::Call&) {
  if (!std::exchange(asleep_, false)) return;
  std::vector<Target> targets = control_.takes_weights();
  std::erase_if(targets, [](const Target& target) { return !target.sleep_mode; });
  control_.post_or_fail(targets, "/wake_up", "{}", settings_.deadlines.control);
  if (!without_weights_) loop_.run([&] { fleet_.release(); });  // else the next update does
}

void Generator::flush_cache(const sdk::Call&) {
  loop_.run([&] { fleet_.forget_prefixes(); });
  std::vector<Target> targets = control_.up();
  std::erase_if(targets, [](const Target& target) { return !target.dev_mode; });
  control_.post(targets, "/reset_prefix_cache", "{}", settings_.deadlines.control);
}

}  // namespace hexad::vllm
