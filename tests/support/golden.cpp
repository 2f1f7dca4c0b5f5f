#include "tests/support/golden.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace golden {
namespace {

std::filesystem::path source_dir() {
  const char* dir = std::getenv("HEXAD_SOURCE_DIR");
  return dir ? dir : ".";
}

}  // namespace

std::filesystem::path folder() {
  const char* dir = std::getenv("HEXAD_GOLDEN_DIR");
  return dir && *dir ? std::filesystem::path(dir) : source_dir() / "tests/golden";
}

void count(const std::string& file, size_t cases) {
  const char* build = std::getenv("HEXAD_BUILD_DIR");
  if (!build) return;
  const std::filesystem::path report = std::filesystem::path(build) / "golden-report";
  std::filesystem::create_directories(report);
  std::ofstream(report / "counts.txt", std::ios::app) << file << ' ' << cases << '\n';
}

void for_each_case(const std::string& file, const std::function<void(const Json&)>& check,
                   const std::function<bool(const Json&)>& selects) {
  const std::filesystem::path path = folder() / (file + ".json");
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), "cannot read golden file " << path.string());
  const Json document = Json::parse(in);
  size_t visited = 0;
  for (const Json& test_case : document.at("cases")) {
    if (selects && !selects(test_case)) continue;
    const std::string name = test_case.at("name");
    INFO("golden case " << file << ": " << name);
    check(test_case);
    ++visited;
  }
  CHECK_MESSAGE(visited > 0, "no case of " << file << " was selected");
  count(file, visited);
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
