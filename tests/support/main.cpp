// Every test program: doctest, a second try for cases whose outcome depends on how fast processes are, and a word about
// what a run leaves out.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/support/report.hpp"
#include "tests/support/test_device.hpp"

namespace {

// Cases of this doctest suite start processes that must answer in time, which a busy machine may not allow.
constexpr const char* kTiming = "timing";

struct Failed {
  std::string name;
  bool of_timing;
};
std::vector<Failed> failed;
std::map<std::string, int> not_run;  // cases by suite

class Watcher final : public doctest::IReporter {
 public:
  explicit Watcher(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& data) override { current_ = &data; }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (!stats.testCaseSuccess) failed.push_back({current_->m_name, std::string(current_->m_test_suite) == kTiming});
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData& data) override { ++not_run[data.m_test_suite]; }

 private:
  const doctest::TestCaseData* current_ = nullptr;
};
DOCTEST_REGISTER_LISTENER("watcher", 1, Watcher);

// doctest parts filters at commas.
std::string filter_of(const std::string& name) {
  std::string filter;
  for (const char c : name) filter += c == ',' ? std::string("\\,") : std::string(1, c);
  return filter;
}

// All that failed, once more; the exit status of that.
int run_again(int argc, char** argv) {
  const std::vector<Failed> again = std::move(failed);
  failed.clear();
  doctest::Context context(argc, argv);
  context.clearFilters();
  for (const Failed& each : again) {
    std::printf("failed, and is run once more, because it depends on how fast processes are: %s\n", each.name.c_str());
    context.addFilter("test-case", filter_of(each.name).c_str());
  }
  const int result = context.run();
  if (result == 0) {
    for (const Failed& each : again) test_report::retried(each.name);
  }
  return result;
}

// Suites that `make test` excludes, as they have commands of their own (cmake/HexadTargets.cmake); and the files of
// tests that this build is without. The suite "golden" is a test of its own beside this one.
void note_left_out(int argc, char** argv) {
  static const std::map<std::string, std::string> commands = {
      {"layouts", "make test-layouts"}, {"faults", "make test-faults"}, {"gpu", "make test-gpu"}};
  const auto excludes = [](const char* argument) { return std::string(argument).starts_with("--test-suite-exclude="); };
  if (std::none_of(argv + 1, argv + argc, excludes)) return;
  for (const auto& [suite, command] : commands) {
    if (not_run.contains(suite))
      test_report::left_out(std::to_string(not_run[suite]) + " cases of the suite " + suite + ": " + command);
  }
  if (const char* const files = std::getenv("HEXAD_TESTS_NOT_BUILT")) {
    test_report::left_out("not built, as this build is without CUDA: " + std::string(files) + ": make test-gpu");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string why = test_device::refusal(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  int result = doctest::Context(argc, argv).run();
  note_left_out(argc, argv);
  const bool may_try_again =
      !failed.empty() && std::all_of(failed.begin(), failed.end(), [](const Failed& each) { return each.of_timing; });
  if (result != 0 && may_try_again) result = run_again(argc, argv);
  std::fputs(test_device::left_out().c_str(), stdout);
  return result;
}
