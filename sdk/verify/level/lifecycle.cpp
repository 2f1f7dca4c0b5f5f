#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "sdk/verify/case/loss_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"
#include "sdk/verify/overlay_host.hpp"

namespace hexad::verify {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarm = 100, kWindow = 180, kRounds = kWarm + 5 * kWindow;
constexpr auto kPatience = std::chrono::seconds(4);  // a heavy plugin makes fewer rounds
constexpr int64_t kLeakPerRound = 8;                 // bytes that a round may cost

int64_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void check_leaks(const Subject& subject, OverlayHost& host, Findings& findings) {
  const auto round = [&] { return static_cast<bool>(Instance(subject, host.table())); };
  for (int warm = 0; warm < 3; ++warm) {
    if (!round()) return;  // check_twins says why
  }
  const int64_t live = host.live();
  const auto end = Clock::now() + kPatience;
  std::vector<int64_t> marks;
  int rounds = 0;
  for (; rounds < kRounds && Clock::now() < end; ++rounds) {
    if (rounds >= kWarm && (rounds - kWarm) % kWindow == 0) marks.push_back(heap_bytes());
    round();
  }
  findings.expect(host.live() == live, "host memory",
                  std::to_string(host.live() - live) + " blocks of host memory are left after " +
                      std::to_string(rounds) + " times create and destroy");
  if (rounds < kRounds) return;  // too few for a statement about the heap
  // A leak grows in every window; what threads and their caches keep of the heap comes and goes.
  marks.push_back(heap_bytes());
  int64_t growth = std::numeric_limits<int64_t>::max();
  for (size_t i = 1; i < marks.size(); ++i) growth = std::min(growth, (marks[i] - marks[i - 1]) / kWindow);
  findings.expect(growth <= kLeakPerRound, "leak",
                  "each create and destroy leaves about " + std::to_string(growth) + " bytes behind");
}

void check_twins(const Subject& subject, OverlayHost& host, Findings& findings) {
  const Instance one(subject, host.table());
  if (!findings.expect(static_cast<bool>(one), "create", one.error())) return;
  const Trial alone = run_trial(subject, one.self());
  if (!findings.expect(alone.code == HEXAD_OK, "run", alone.text)) return;
  findings.expect(alone.damage.empty(), "canary", "it wrote " + alone.damage);
  const Instance two(subject, host.table());
  if (!findings.expect(static_cast<bool>(two), "two instances", "a second instance beside the first: " + two.error()))
    return;
  if (!repeatable(subject)) return;
  findings.expect(run_trial(subject, two.self()).bits == alone.bits, "two instances",
                  "a second instance computes something else: they share state");
  findings.expect(run_trial(subject, one.self()).bits == alone.bits, "two instances",
                  "the first instance changes its results once there is a second");
}

// A configuration with one key changed: refused with a text, or taken and able to work.
void check_value(const Subject& subject, OverlayHost& host, const std::string& key, const std::string& value,
                 bool must_refuse, Findings& findings) {
  const auto config = subject.engine->config({{key, value}});
  const auto call = subject.engine->call();
  const std::string where = key + ": " + value;
  void* const untouched = reinterpret_cast<void*>(0x5A5A5A5A);
  void* self = untouched;
  const hexad_code code = create(subject, host.table(), *call, *config, &self);
  if (code != HEXAD_OK) {
    findings.expect(!call->text().empty(), "error text", "create with " + where + " failed without a text");
    findings.expect(self == untouched, "out pointer", "create with " + where + " failed and wrote its out pointer");
    return;
  }
  findings.expect(!must_refuse, "config", "create took " + where + ", which has the wrong type, without an error");
  const Trial trial = run_trial(subject, self);
  findings.expect(trial.code == HEXAD_OK || !trial.text.empty(), "error text",
                  "work with " + where + " failed without a text");
  findings.expect(trial.damage.empty(), "canary", "with " + where + " it wrote " + trial.damage);
  destroy(subject, self);
}

void check_configuration(const Subject& subject, OverlayHost& host, Findings& findings) {
  { const Instance asks(subject, host.table()); }
  for (const auto& [key, type] : host.keys()) {
    check_value(subject, host, key, type == "text" ? "[1]" : "\"no number\"", /*must_refuse=*/true, findings);
    const bool number = type == "int" || type == "number";
    const std::vector<std::string> extremes = number ? std::vector<std::string>{"0", "-1", "9223372036854775807"}
                                              : type == "text"
                                                  ? std::vector<std::string>{"\"\"", '"' + std::string(4096, 'x') + '"'}
                                                  : std::vector<std::string>{"true", "false"};
    for (const std::string& value : extremes) check_value(subject, host, key, value, /*must_refuse=*/false, findings);
    if (type == "number") check_value(subject, host, key, "1e308", /*must_refuse=*/false, findings);
  }
}

void check_destroy_after_failure(const Subject& subject, OverlayHost& host, Findings& findings) {
  const int64_t live = host.live();
  {
    const Instance instance(subject, host.table());
    if (!instance) return;
    host.fail_at(1);
    run_trial(subject, instance.self());
    host.fail_at(0);
  }
  findings.expect(
      host.live() == live, "host memory",
      "destroy after a failed call leaves " + std::to_string(host.live() - live) + " blocks of host memory");
}

}  // namespace

void check_lifecycle(const Subject& subject, Findings& findings) {
  OverlayHost host(subject.engine->host());
  check_twins(subject, host, findings);
  check_leaks(subject, host, findings);
  check_destroy_after_failure(subject, host, findings);
  check_configuration(subject, host, findings);
}

}  // namespace hexad::verify
