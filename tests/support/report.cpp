#include "tests/support/report.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace test_report {
namespace {

// A line of the folder HEXAD_TEST_REPORT, if the environment names one; each process has a file of its own.
void note(const std::string& kind, const std::string& text) {
  const char* const folder = std::getenv("HEXAD_TEST_REPORT");
  if (!folder) return;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  std::filesystem::create_directories(folder);
  std::ofstream(std::filesystem::path(folder) / (program + "-" + std::to_string(::getpid())), std::ios::app)
      << kind << '\t' << program << ": " << text << '\n';
}

}  // namespace

void skipped(const std::string& why) {
  const auto* test = doctest::getContextOptions()->currentTest;
  const std::string name = test ? test->m_name : "(before the tests)";
  MESSAGE("skipped: " << why);
  note("skipped", name + ": " + why);
}

void left_out(const std::string& what) { note("skipped", what); }

void retried(const std::string& name) { note("retried", name); }

}  // namespace test_report
