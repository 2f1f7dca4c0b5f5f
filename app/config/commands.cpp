#include "app/config/commands.hpp"

#include "app/config/fold.hpp"
#include "app/config/origin.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::config {
namespace {

constexpr int kInvalid = 2;
constexpr int64_t kLargeParameters = 100'000'000;  // bytes: of less, memory is no question

nlohmann::ordered_json to_json(const Problem& problem) {
  nlohmann::ordered_json result = {
      {"key", problem.key}, {"message", without_secrets(problem.message)}, {"file", problem.location.file}};
  if (problem.location.line > 0) result["line"] = problem.location.line, result["column"] = problem.location.column;
  return result;
}

std::string line_of(const Problem& problem) {
  return problem.key.empty() ? "error: " + indented(without_secrets(problem.message)) : problem.text();
}

nlohmann::ordered_json to_json(const BytesFact& bytes) {
  return {{"parameters", bytes.parameters}, {"gradients", bytes.gradients}, {"optimizer", bytes.optimizer}};
}

std::string line_of(const BytesFact& bytes) {
  const auto gib = [](int64_t part) { return static_cast<double>(part) / (1 << 30); };
  return fmt::format(
      "a rank that trains holds about {:.1f} GiB: parameters {:.1f}, gradients {:.1f}, optimizer state {:.1f} "
      "(activations come on top)",
      gib(bytes.sum()), gib(bytes.parameters), gib(bytes.gradients), gib(bytes.optimizer));
}

}  // namespace

int print_problems(const std::vector<Problem>& problems, const std::filesystem::path& path, bool json,
                   std::ostream& out, const std::optional<BytesFact>& bytes) {
  const auto errors = std::ranges::count_if(problems, &Problem::is_error);
  if (json) {
    nlohmann::ordered_json answer = {{"valid", errors == 0},
                                     {"errors", nlohmann::ordered_json::array()},
                                     {"notices", nlohmann::ordered_json::array()}};
    for (const Problem& problem : problems)
      answer[problem.is_error() ? "errors" : "notices"].push_back(to_json(problem));
    if (bytes) answer["bytes"] = to_json(*bytes);
    out << json_text(answer) << '\n';
  } else {
    for (const Problem& problem : folded(problems)) out << line_of(problem) << '\n';
    if (errors == 0 && bytes && bytes->parameters > kLargeParameters) out << line_of(*bytes) << '\n';
    out << one_line(path.string())
        << (errors == 0 ? ": valid" : fmt::format(": not valid, {} error{}", errors, errors == 1 ? "" : "s")) << '\n';
  }
  return errors == 0 ? 0 : kInvalid;
}

int config_show(const std::filesystem::path& path, const std::vector<std::string>& overrides, bool json,
                std::ostream& out, std::ostream& errors, bool origins, const Compat& compat) {
  try {
    const Loaded loaded = load_with_defaults(path, overrides, compat);
    bool valid = true;
    for (const Problem& problem : check(loaded)) {
      if (!problem.is_error()) continue;
      valid = false;
      errors << problem.text() << '\n';
    }
    if (!valid) return kInvalid;
    if (json) {
      out << json_text(
                 with_named_infinities(origins ? origins_json(loaded) : yaml::without_secrets(loaded.root).to_json()))
          << '\n';
    } else {
      out << shown_yaml(loaded, origins);
    }
    return 0;
  } catch (const Error& error) {
    errors << indented(error.what()) << '\n';
    return error.exit_code();
  }
}

}  // namespace hexad::config
