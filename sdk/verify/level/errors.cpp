#include <atomic>
#include <chrono>

#include "sdk/verify/case/loss_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"
#include "sdk/verify/overlay_host.hpp"

namespace hexad::verify {
namespace {

constexpr int kMostServices = 500;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr double kCancelSeconds = 0.1;

// create with its n-th service failing. False when create made fewer than n calls.
bool create_with_fault(const Subject& subject, OverlayHost& host, int n, Findings& findings) {
  const int64_t live = host.live();
  const auto config = subject.engine->config();
  const auto call = subject.engine->call();
  void* const untouched = reinterpret_cast<void*>(0x5A5A5A5A);
  void* self = untouched;
  host.fail_at(n);
  const hexad_code code = create(subject, host.table(), *call, *config, &self);
  const bool tripped = host.tripped();
  const std::string where =
      "create, when " + host.tripped_service() + " (service call " + std::to_string(n) + ") fails, ";
  host.fail_at(0);
  if (!tripped) {
    if (code == HEXAD_OK) destroy(subject, self);
    return false;
  }
  if (!findings.expect(code != HEXAD_OK, "error swallowed", where + "returns HEXAD_OK")) {
    destroy(subject, self);
    return true;
  }
  findings.expect(!call->text().empty(), "error text", where + "returns " + std::to_string(code) + " without a text");
  findings.expect(self == untouched, "out pointer", where + "writes its out pointer");
  findings.expect(host.live() == live, "host memory",
                  where + "leaves " + std::to_string(host.live() - live) + " blocks of host memory");
  return true;
}

// The instance's work with its n-th service failing; afterwards it has to work as before.
bool work_with_fault(const Subject& subject, void* self, OverlayHost& host, int n, const std::string& expected,
                     Findings& findings) {
  host.fail_at(n);
  const Trial trial = run_trial(subject, self);
  const bool tripped = host.tripped();
  const std::string where =
      "work, when " + host.tripped_service() + " (service call " + std::to_string(n) + ") fails, ";
  host.fail_at(0);
  if (!tripped) return false;
  findings.expect(trial.code != HEXAD_OK, "error swallowed", where + "returns HEXAD_OK");
  findings.expect(trial.code == HEXAD_OK || !trial.text.empty(), "error text", where + "fails without a text");
  findings.expect(trial.damage.empty(), "canary", where + "wrote " + trial.damage);
  const Trial again = run_trial(subject, self);
  findings.expect(again.code == HEXAD_OK, "usable after an error",
                  where + "and then the next call fails too: " + again.text);
  findings.expect(expected.empty() || again.bits == expected, "usable after an error",
                  where + "and then the next call gives another result");
  return true;
}

// A big batch under a call that is cancelled already.
void check_cancel(const Subject& subject, void* self, Findings& findings) {
  if (!subject.desc->loss) return;  // generators cancel requests (L5); a backend's passes are bounded by their batches
  const std::atomic<bool> cancelled = true;
  const LossCase batch = make_case(*subject.desc->loss, std::vector<int64_t>(256, 1024), 3);
  const LossUse use = plan_of(subject, self, nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const LossResult result = compute(subject, self, batch, use, {&cancelled, 0});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool good = result.code == HEXAD_OK || result.code == HEXAD_CANCELLED;
  findings.expect(good, "cancel",
                  "a cancelled compute returned " + std::to_string(result.code) + ", wanted CANCELLED or its result");
  // Laying out the batch is the kit's own time, and small.
  findings.prefer(seconds < kCancelSeconds + 0.5, "cancel",
                  "a cancelled compute of 262,144 tokens took " + std::to_string(seconds) + " s");
}

}  // namespace

void check_errors(const Subject& subject, Findings& findings) {
  OverlayHost host(subject.engine->host());
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto go_on = [&](int n) { return n <= kMostServices && std::chrono::steady_clock::now() < end; };
  for (int n = 1; go_on(n) && create_with_fault(subject, host, n, findings); ++n) {
  }
  const Instance instance(subject, host.table());
  if (!findings.expect(static_cast<bool>(instance), "usable after an error",
                       "after creates that failed: " + instance.error()))
    return;
  const Trial trial = run_trial(subject, instance.self());
  const std::string expected = repeatable(subject) ? trial.bits : "";
  for (int n = 1; go_on(n) && work_with_fault(subject, instance.self(), host, n, expected, findings); ++n) {
  }
  check_cancel(subject, instance.self(), findings);
}

}  // namespace hexad::verify
