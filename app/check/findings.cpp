#include "app/check/findings.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::cli {

using config::Problem;

void StartFindings::add(Problem::Severity severity, const std::string& key, const std::string& message) {
  if (std::ranges::any_of(problems_, [&](const Problem& each) { return each.message == message; })) return;
  problems_.push_back({severity, loaded.root.nearest(key).location(), key, message});
}

void StartFindings::add(std::vector<Problem> more) {
  problems_.insert(problems_.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

bool StartFindings::has_error() const { return std::ranges::any_of(problems_, &Problem::is_error); }

int StartFindings::exit_code() const {
  const auto errors = std::ranges::count_if(problems_, &Problem::is_error);
  if (errors == 0) return 0;
  return Error(errors == of_plugins_ ? ErrorKind::plugin : ErrorKind::config, "").exit_code();
}

}  // namespace hexad::cli
