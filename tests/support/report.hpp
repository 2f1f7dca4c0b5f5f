// What a run of tests left out, and what it ran twice, for the end of `make test` (tools/test_report.sh).
#pragma once
#include <string>

namespace test_report {

// Notes that the running case, or a part of it, cannot run here, and why.
void skipped(const std::string& why);
// Notes what a run of this program leaves out, and why.
void left_out(const std::string& what);
// Notes a case that failed once and held when it was run again.
void retried(const std::string& name);

}  // namespace test_report
