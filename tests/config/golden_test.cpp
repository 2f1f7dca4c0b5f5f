// What OmegaConf and Hydra make of files and overrides, through NeMo-RL's loader.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "lib/base/error.hpp"
#include "tests/config/support.hpp"
#include "tests/support/golden.hpp"

namespace {

using golden::Json;
using hexad::yaml::Node;

constexpr const char* kRoot = "@ROOT@";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Floats that JSON cannot hold are {"$float": "inf"} in the vectors.
Json with_float_names(const Node& node) {
  if (node.is_double()) {
    const double value = node.as_double();
    if (std::isnan(value)) return {{"$float", "nan"}};
    if (std::isinf(value)) return {{"$float", value < 0 ? "-inf" : "inf"}};
    if (value == 0 && std::signbit(value)) return {{"$float", "-0.0"}};
    return value;
  }
  if (node.is_list()) {
    Json list = Json::array();
    for (const Node& item : node.items()) list.push_back(with_float_names(item));
    return list;
  }
  if (node.is_map()) {
    Json map = Json::object();
    for (const auto& [key, value] : node.entries()) map[key] = with_float_names(value);
    return map;
  }
  return node.to_json();
}

// Equal with 1 and 1.0 told apart, keys in the same order.
bool identical(const Json& a, const Json& b) {
  if (a.is_number_float() != b.is_number_float()) return false;
  if (a.is_structured() && a.type() == b.type()) {
    if (a.size() != b.size()) return false;
    for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
      if ((a.is_object() && x.key() != y.key()) || !identical(*x, *y)) return false;
    }
    return true;
  }
  return a == b;
}

class Folder {
 public:
  explicit Folder(const Json& files) {
    path_ = std::filesystem::temp_directory_path() / fmt::format("hexad_config_{}", ::getpid());
    std::filesystem::remove_all(path_);
    for (const auto& [name, text] : files.items()) {
      std::filesystem::create_directories((path_ / name).parent_path());
      std::ofstream(path_ / name) << replaced(text.get<std::string>(), kRoot, path_.string());
    }
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void check_case(const Json& test_case) {
  const Json& config = test_case.at("config");
  const Json& expected = test_case.at("expected");
  const Folder folder(test_case.at("inputs").at("files"));
  const Json environment = config.value("environment", Json::object());
  for (const auto& [name, value] : environment.items()) {
    ::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  }
  std::vector<std::string> overrides;
  for (const Json& text : config.at("overrides")) {
    overrides.push_back(replaced(text.get<std::string>(), kRoot, folder.path().string()));
  }
  std::optional<Json> got;
  std::string refusal;
  try {
    got = with_float_names(hexad::config::load(folder.path() / config.at("entry").get<std::string>(), overrides));
  } catch (const hexad::Error& error) {
    refusal = error.what();
    CHECK(error.kind() == hexad::ErrorKind::config);
  }
  INFO("got " << (got ? got->dump() : "refusal: " + refusal));
  if (expected.contains("error")) {
    CHECK_MESSAGE(!got, "must be refused: " << expected.at("error").dump());
  } else if (got) {
    const Json want = Json::parse(replaced(expected.at("resolved").dump(), kRoot, folder.path().string()));
    CHECK_MESSAGE(identical(*got, want), "want " << want.dump());
  } else {
    CHECK_MESSAGE(test_case.value("optional", false), "must not be refused: want " << expected.at("resolved").dump());
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("configurations come out as OmegaConf and Hydra make them") { golden::for_each_case("config", check_case); }
}
