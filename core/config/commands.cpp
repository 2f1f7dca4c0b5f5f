#include "core/config/commands.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/config/origin.hpp"

namespace hexad::config {
namespace {

constexpr int kInvalid = 2;

nlohmann::ordered_json to_json(const Problem& problem) {
  nlohmann::ordered_json result = {{"key", problem.key}, {"message", problem.message}, {"file", problem.location.file}};
  if (problem.location.line > 0) result["line"] = problem.location.line, result["column"] = problem.location.column;
  return result;
}

// The problems of a configuration; one that cannot be read at all is one error.
std::vector<Problem> problems_of(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  try {
    return check(load_with_defaults(path, overrides));
  } catch (const Error& error) {
    return {{Problem::Severity::error, {}, "", error.what()}};
  }
}

std::string line_of(const Problem& problem) {
  return problem.key.empty() ? "error: " + problem.message : problem.text();
}

}  // namespace

int config_check(const std::filesystem::path& path, const std::vector<std::string>& overrides, bool json,
                 std::ostream& out) {
  return print_problems(problems_of(path, overrides), path, json, out);
}

int print_problems(const std::vector<Problem>& problems, const std::filesystem::path& path, bool json,
                   std::ostream& out) {
  const auto errors = std::ranges::count_if(problems, &Problem::is_error);
  if (json) {
    nlohmann::ordered_json answer = {{"valid", errors == 0},
                                     {"errors", nlohmann::ordered_json::array()},
                                     {"notices", nlohmann::ordered_json::array()}};
    for (const Problem& problem : problems)
      answer[problem.is_error() ? "errors" : "notices"].push_back(to_json(problem));
    out << json_text(answer) << '\n';
  } else {
    for (const Problem& problem : problems) out << line_of(problem) << '\n';
    out << path.string()
        << (errors == 0 ? ": valid" : fmt::format(": not valid, {} error{}", errors, errors == 1 ? "" : "s")) << '\n';
  }
  return errors == 0 ? 0 : kInvalid;
}

int config_show(const std::filesystem::path& path, const std::vector<std::string>& overrides, bool json,
                std::ostream& out, std::ostream& errors, bool origins) {
  try {
    const Loaded loaded = load_with_defaults(path, overrides);
    bool valid = true;
    for (const Problem& problem : check(loaded)) {
      if (!problem.is_error()) continue;
      valid = false;
      errors << problem.text() << '\n';
    }
    if (!valid) return kInvalid;
    if (json) {
      out << json_text(origins ? origins_json(loaded) : loaded.root.to_json()) << '\n';
    } else {
      out << shown_yaml(loaded, origins);
    }
    return 0;
  } catch (const Error& error) {
    errors << error.what() << '\n';
    return error.exit_code();
  }
}

}  // namespace hexad::config
