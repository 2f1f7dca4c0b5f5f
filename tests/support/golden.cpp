#include "tests/support/golden.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>

#include "tests/support/report.hpp"

namespace golden {
namespace {

std::filesystem::path source_dir() {
  const char* dir = std::getenv("HEXAD_SOURCE_DIR");
  return dir ? dir : ".";
}

// Notes for golden_summary.py: a line FILE<tab>CASE<tab>WHAT of each case, which ran or was skipped; a line FILE of a
// file without cases that is known. Each process has a file of its own.
void note(const std::string& file, const std::vector<std::string>& cases, const char* what) {
  const char* build = std::getenv("HEXAD_BUILD_DIR");
  if (!build) return;
  const std::filesystem::path report = std::filesystem::path(build) / "golden-report";
  std::filesystem::create_directories(report);
  std::ofstream out(report / std::to_string(::getpid()), std::ios::app);
  if (cases.empty()) out << file << '\n';
  for (const std::string& name : cases) out << file << '\t' << name << '\t' << what << '\n';
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// "loss" and "loss_more", where there is loss_more.json.
std::vector<std::string> files_of(const std::string& file) {
  std::vector<std::string> found = {file};
  const std::filesystem::path parent = (folder() / file).parent_path();
  const std::string begin = std::filesystem::path(file).filename().string() + "_";
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".json" || !stem.starts_with(begin)) continue;
    found.push_back((std::filesystem::path(file).parent_path() / stem).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Runs the selected cases of one file; returns how many there were.
size_t run_file(const std::string& file, const std::function<void(const Json&)>& check,
                const std::function<bool(const Json&)>& selects) {
  const std::filesystem::path path = folder() / (file + ".json");
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), "cannot read golden file " << path.string());
  const Json document = Json::parse(in);
  std::vector<std::string> ran;
  std::map<std::string, std::vector<std::string>> skipped;  // by reason
  size_t selected = 0;
  for (const Json& test_case : document.at("cases")) {
    if (selects && !selects(test_case)) continue;
    ++selected;
    const std::string name = test_case.at("name");
    INFO("golden case " << file << ": " << name);
    try {
      check(test_case);
      ran.push_back(name);
    } catch (const Skip& skip) {
      skipped[skip.why].push_back(name);
    }
  }
  for (const auto& [why, names] : skipped) {
    test_report::skipped("golden " + file + ": " + listed(names) + ": " + why);
    note(file, names, "skipped");
  }
  note(file, ran, "ran");
  return selected;
}

}  // namespace

std::filesystem::path folder() {
  const char* dir = std::getenv("HEXAD_GOLDEN_DIR");
  return dir && *dir ? std::filesystem::path(dir) : source_dir() / "tests/golden";
}

std::vector<std::filesystem::path> models() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "models")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

bool has(const std::string& file) { return std::filesystem::exists(folder() / (file + ".json")); }

void count(const std::string& file, size_t cases) { note(file, std::vector<std::string>(cases), "ran"); }

void skip(const std::vector<std::string>& files, const std::string& why) {
  if (files.empty()) return;
  for (const std::string& file : files) note(file, {}, "skipped");
  test_report::skipped("golden " + listed(files) + ": " + why);
}

void for_each_case(const std::string& file, const std::function<void(const Json&)>& check,
                   const std::function<bool(const Json&)>& selects) {
  size_t selected = 0;
  for (const std::string& each : files_of(file)) selected += run_file(each, check, selects);
  if (selected == 0) test_report::skipped("golden " + file + ": none of its cases is for this test");
}

std::string prefix(const Json& test_case) {
  const std::string name = test_case.at("name");
  return name.substr(0, name.find('/'));
}

double number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "-0.0") return -0.0;
  REQUIRE_MESSAGE(text == "nan", "not a number: " << text);
  return std::numeric_limits<double>::quiet_NaN();
}

Tensor tensor(const Json& value) {
  Tensor result{value.at("shape").get<std::vector<int64_t>>(), value.at("dtype").get<std::string>(), {}};
  result.data.reserve(value.at("data").size());
  for (const Json& element : value.at("data")) result.data.push_back(number(element));
  return result;
}

void check_close(const std::vector<double>& got, const std::vector<double>& want, double relative, double absolute) {
  REQUIRE(got.size() == want.size());
  double worst = -1;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool same = got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
    if (same) continue;
    const double excess = std::abs(got[i] - want[i]) - absolute - relative * std::abs(want[i]);
    const double score = std::isnan(excess) ? std::numeric_limits<double>::infinity() : excess;
    if (score > worst) worst = score, where = i;
  }
  if (worst > 0) {
    CHECK_MESSAGE(worst <= 0,
                  "element " << where << " of " << got.size() << ": got " << got[where] << ", want " << want[where]);
  } else {
    CHECK(worst <= 0);
  }
}

}  // namespace golden
