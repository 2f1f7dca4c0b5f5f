// The name of a repository of the Hugging Face Hub: "owner/name", or "gpt2"; with "@revision" behind it or without.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace hexad::hub {

enum class Kind { model, dataset };

struct Repository {
  Kind kind = Kind::model;
  std::string id;                 // without the revision
  std::string revision = "main";  // as it was written: is_revision() has the last word

  // The name of its folder in a cache: "models--owner--name".
  std::string folder() const;
  // The line of a shell that fetches it: "hf download owner/name --revision v1".
  std::string fetch_line() const;
};

// Nothing where `name` can be none. The path of a file or folder that is not there may look like one.
std::optional<Repository> repository_named(Kind kind, std::string_view name);

// Whether a branch, a tag or a commit may be called so here: no '/', no "..", nothing that a shell would take for more
// than a word.
bool is_revision(std::string_view text);
// A whole commit: 40 digits of sixteen.
bool is_commit(std::string_view text);

}  // namespace hexad::hub
