#include "lib/hub/repository.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/pattern.hpp"
#include "lib/base/text.hpp"

namespace hexad::hub {

std::string Repository::folder() const {
  return (kind == Kind::model ? "models--" : "datasets--") + replaced(id, "/", "--");
}

std::string Repository::fetch_line() const {
  return fmt::format("hf download {}{}{}", id, kind == Kind::dataset ? " --repo-type dataset" : "",
                     revision == "main" ? "" : " --revision " + revision);
}

// The rules are those of huggingface_hub: "--" stands for the slash in the folder's name, and so in no name itself.
std::optional<Repository> repository_named(Kind kind, std::string_view name) {
  static const Pattern pattern(
      "[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?(?:/[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?)?");
  const size_t at = name.find('@');
  const std::string_view id = name.substr(0, at);
  if (id.find("--") != id.npos || id.find("..") != id.npos || id.ends_with(".git") || !pattern.matches(id))
    return std::nullopt;
  Repository repository{kind, std::string(id)};
  if (at != name.npos) repository.revision = name.substr(at + 1);
  return repository;
}

bool is_revision(std::string_view text) {
  static const Pattern pattern("[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}");
  return text.find("..") == text.npos && pattern.matches(text);
}

bool is_commit(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 40 && std::ranges::all_of(text, is_digit);
}

}  // namespace hexad::hub
