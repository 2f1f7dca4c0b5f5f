// What doctor's tests look for in findings.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "app/doctor/finding.hpp"

namespace doctor_test {

using namespace hexad::doctor;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The worst of them.
inline Level worst(const Findings& findings) {
  Level level = Level::ok;
  for (const Finding& each : findings) level = std::max(level, each.level);
  return level;
}

// Whether one of them has this level and these words, in its text or in how to mend it. Every note and problem must say
// how to mend it.
inline void check_says(const Findings& findings, Level level, const std::string& words) {
  std::string all;
  bool found = false;
  for (const Finding& each : findings) {
    const std::string text = each.text + " | " + each.mend;
    all += std::string("\n") + name_of(each.level) + " " + each.topic + " " + text;
    found = found || (each.level == level && contains(text, words));
    CHECK_MESSAGE((each.level == Level::ok) == each.mend.empty(), text);
  }
  CHECK_MESSAGE(found, "wanted " << name_of(level) << " \"" << words << "\", got:" << all);
}

inline void check_all_ok(const Findings& findings, const std::string& words) {
  check_says(findings, Level::ok, words);
  CHECK(worst(findings) == Level::ok);
}

}  // namespace doctor_test
