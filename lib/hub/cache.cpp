#include "lib/hub/cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/text.hpp"

namespace hexad::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortest = 4;          // digits of a short commit, as in git
constexpr uintmax_t kLargestRef = 4096;  // bytes; a commit and a line end are 41

// The folder that a variable names, "~" being HOME; empty where it is not set, or to nothing.
fs::path named_by(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return {};
  const std::string text = value;
  if (text != "~" && !text.starts_with("~/")) return text;
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home + text.substr(1)) : fs::path();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code absent;
  if (!fs::is_directory(folder, absent)) return names;
  for (const fs::directory_entry& entry : entries_of(folder)) names.push_back(entry.path().filename().string());
  return names;
}

// The snapshot that refs/<revision> names, a commit as the Hub writes it; empty where there is no such file. Other
// tools that fill the cache may call a snapshot otherwise, and huggingface_hub opens those too.
std::string commit_of_ref(const Repository& repository, const fs::path& folder) {
  const std::string name = "refs/" + repository.revision;
  std::error_code absent;
  if (!fs::exists(folder / name, absent)) return "";
  std::string text = "more than a commit";
  if (const uintmax_t bytes = fs::file_size(folder / name, absent); absent || bytes <= kLargestRef)
    text = trimmed(read_own_file(folder, name));
  if (!is_revision(text))
    fail(ErrorKind::config, "{} holds '{}', want a commit. Remove the file, and fetch it anew: {}",
         (folder / name).string(), one_line(text), repository.fetch_line());
  if (!fs::is_directory(folder / "snapshots" / text, absent))
    fail(ErrorKind::config, "{} names the commit {}, and {} is not there. Fetch it: {}", (folder / name).string(), text,
         (folder / "snapshots" / text).string(), repository.fetch_line());
  return text;
}

// Of refs/ and snapshots/: "main, v1.0, 0a1b2c3d".
std::string revisions_in(const fs::path& folder) {
  constexpr size_t kMost = 12, kDigits = 8;
  std::vector<std::string> names;
  for (const std::string& name : names_in(folder / "refs"))
    if (std::error_code unreadable; is_revision(name) && fs::is_regular_file(folder / "refs" / name, unreadable))
      names.push_back(name);
  for (const std::string& name : names_in(folder / "snapshots"))
    if (is_commit(name)) names.push_back(name.substr(0, kDigits));
  const size_t all = names.size();
  if (all > kMost) names.resize(kMost);
  return all == 0 ? "nothing" : joined(names) + (all > kMost ? fmt::format(" and {} more", all - kMost) : "");
}

// The commit in snapshots/ that `revision` is, or is the beginning of; empty where there is none.
std::string commit_beginning(const Repository& repository, const fs::path& folder) {
  const std::string& revision = repository.revision;
  std::vector<std::string> commits;
  if (revision.size() < kShortest) return "";
  for (const std::string& name : names_in(folder / "snapshots"))
    if (is_commit(name) && name.starts_with(revision)) commits.push_back(name);
  if (commits.size() > 1)
    fail(ErrorKind::config, "the revision '{}' of {} is the beginning of several commits: {}. Give more of its digits",
         revision, repository.id, joined(commits));
  return commits.empty() ? "" : commits.front();
}

}  // namespace

fs::path cache_folder() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const fs::path named = named_by(variable); !named.empty()) return fs::absolute(named);
  if (const fs::path home = named_by("HF_HOME"); !home.empty()) return fs::absolute(home / "hub");
  if (const fs::path caches = named_by("XDG_CACHE_HOME"); !caches.empty())
    return fs::absolute(caches / "huggingface/hub");
  const fs::path home = named_by("HOME");
  return home.empty() ? home : fs::absolute(home / ".cache/huggingface/hub");
}

fs::path snapshot_of(const Repository& repository, const fs::path& folder) {
  if (!is_revision(repository.revision))
    fail(ErrorKind::config,
         "'{}' is no revision of {}: want a branch, a tag or a commit, of letters, digits, '.', '_', '+' and '-'",
         one_line(repository.revision), repository.id);
  std::string commit = commit_of_ref(repository, folder);
  if (commit.empty()) commit = commit_beginning(repository, folder);
  if (commit.empty())
    fail(ErrorKind::config, "the revision '{}' of {} is not in the Hub's cache; {} has: {}. Fetch it: {}",
         repository.revision, repository.id, folder.string(), revisions_in(folder), repository.fetch_line());
  std::error_code unreadable;
  fs::path snapshot = fs::canonical(folder / "snapshots" / commit, unreadable);
  if (unreadable)
    fail(ErrorKind::config, "{}: cannot be opened: {}", (folder / "snapshots" / commit).string(), unreadable.message());
  if (!lies_in(snapshot, fs::canonical(folder)))
    fail(ErrorKind::config, "{} is a link to {}, outside of the repository's folder. Remove it, and fetch it anew: {}",
         (folder / "snapshots" / commit).string(), snapshot.string(), repository.fetch_line());
  return snapshot;
}

}  // namespace hexad::hub
