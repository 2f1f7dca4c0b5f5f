#include <memory>
#include <thread>
#include <vector>

#include "sdk/verify/case/generator_case.hpp"
#include "sdk/verify/instance.hpp"
#include "sdk/verify/level/levels.hpp"

namespace hexad::verify {
namespace {

constexpr int kThreads = 4, kRounds = 20;

// Runs `work` on another thread, to its end.
template <typename Work>
auto elsewhere(Work&& work) {
  decltype(work()) result;
  std::thread([&] { result = work(); }).join();
  return result;
}

void check_alternating(const Subject& subject, void* self, const std::string& expected, Findings& findings) {
  for (int i = 0; i < kRounds; ++i) {
    const Trial trial = elsewhere([&] { return run_trial(subject, self); });
    findings.expect(trial.code == HEXAD_OK, "any thread", "a call from another thread failed: " + trial.text);
    findings.expect(expected.empty() || trial.bits == expected, "any thread",
                    "the result depends on the thread that calls: is state kept per thread?");
  }
}

void check_parallel(const Subject& subject, const std::string& expected, Findings& findings) {
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Instance own(subject, subject.engine->host());
      if (!own) problems[i] = own.error();
      for (int round = 0; own && round < kRounds; ++round) {
        const Trial trial = run_trial(subject, own.self());
        if (trial.code != HEXAD_OK) problems[i] = trial.text;
        if (!expected.empty() && trial.bits != expected)
          problems[i] = "the result differs from that of one instance alone";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) findings.expect(problem.empty(), "instances in parallel", problem);
}

// submit and cancel are of class A: they may come while another thread polls.
void check_submit_while_polling(const Subject& subject, void* self, Findings& findings) {
  Answers first;
  std::thread poller([&] { first = run_requests(subject, self, {make_request(1, 1, 1, 32)}); });
  const uint64_t ids[] = {77, 78};
  for (int i = 0; i < kRounds; ++i) {
    const auto call = subject.engine->call();
    subject.desc->generator->cancel(static_cast<hexad_generator*>(self), call->handle(), ids, std::size(ids));
  }
  poller.join();
  findings.expect(first.code == HEXAD_OK && first.by_id.contains(1), "class A",
                  "a request did not end while another thread cancelled others: " + first.text);
}

}  // namespace

void check_threads(const Subject& subject, Findings& findings) {
  const Instance instance(subject, subject.engine->host());
  if (!findings.expect(static_cast<bool>(instance), "create", instance.error())) return;
  const Trial trial = run_trial(subject, instance.self());
  if (!findings.expect(trial.code == HEXAD_OK, "run", trial.text)) return;
  const std::string expected = repeatable(subject) ? trial.bits : "";
  check_alternating(subject, instance.self(), expected, findings);
  check_parallel(subject, expected, findings);
  if (subject.desc->generator) check_submit_while_polling(subject, instance.self(), findings);
}

}  // namespace hexad::verify
