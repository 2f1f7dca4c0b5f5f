#include "lib/hub/hub.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/hub/cache.hpp"
#include "lib/hub/whole.hpp"

namespace hexad::hub {
namespace {

namespace fs = std::filesystem;

Kind kind_of(Use use) { return use == Use::data ? Kind::dataset : Kind::model; }

// "data/train.jsonl", or "models/mine" beside a folder `models`: a path that somebody has mistyped.
bool is_like_path(const std::string& id) {
  constexpr std::string_view kFiles[] = {".json",    ".jsonl", ".csv", ".arrow", ".gguf", ".safetensors",
                                         ".parquet", ".yaml",  ".txt", ".zst",   ".gz"};
  std::error_code unreadable;
  const size_t slash = id.find('/');
  return std::ranges::find(kFiles, fs::path(id).extension().string()) != std::end(kFiles) ||
         (slash != id.npos && fs::exists(id.substr(0, slash), unreadable));
}

}  // namespace

std::optional<fs::path> find(Use use, const std::string& key, const std::string& name) {
  std::optional<Repository> repository = repository_named(kind_of(use), name);
  const fs::path cache = cache_folder();
  if (!repository || cache.empty()) return std::nullopt;
  const fs::path folder = cache / repository->folder();
  std::error_code absent;
  if (!fs::is_directory(folder, absent)) return std::nullopt;
  try {
    const fs::path snapshot = snapshot_of(*repository, folder);
    // The Hub knows whole commits.
    if (const std::string commit = snapshot.filename(); commit.starts_with(repository->revision))
      repository->revision = commit;
    require_whole(use, *repository, snapshot);
    return snapshot;
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", key, error.what());
  }
}

bool is_absent(Use use, const std::string& name) {
  const std::optional<Repository> repository = repository_named(kind_of(use), name);
  std::error_code unreadable;
  if (!repository || repository->id.find('/') == std::string::npos || is_like_path(repository->id)) return false;
  if (!is_revision(repository->revision) || fs::exists(name, unreadable)) return false;
  const fs::path cache = cache_folder();
  return cache.empty() || !fs::is_directory(cache / repository->folder(), unreadable);
}

fs::path model_folder(const std::string& name) {
  std::error_code unreadable;
  if (fs::is_directory(name, unreadable)) return name;
  try {
    return find(Use::model, "", name).value_or(name);
  } catch (const std::exception&) {  // said where the model is needed
    return name;
  }
}

std::string how_to_fetch(Use use, const std::string& name) {
  const std::optional<Repository> repository = repository_named(kind_of(use), name);
  if (!repository || is_like_path(repository->id)) return "";
  if (use == Use::data && repository->id.find('/') == std::string::npos) return "";
  if (!is_revision(repository->revision))
    return fmt::format("; of a name of the Hub '{}' would be the revision, of letters, digits, '.', '_', '+' and '-'",
                       one_line(repository->revision));
  const fs::path cache = cache_folder();
  const char* what = use == Use::data ? "data set" : "model";
  if (cache.empty()) return "; where the Hub's cache is nothing says: HF_HUB_CACHE, HF_HOME and HOME are not set";
  return fmt::format("; the Hub's cache, {}, has no such {} either. Fetch it: {}", cache.string(), what,
                     repository->fetch_line());
}

}  // namespace hexad::hub
