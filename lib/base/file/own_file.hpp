// Files of a folder that somebody else may have made: a model's. A link in it can name any file of who runs us, and a
// copy would give that file away. A file is the folder's own if it lies in it, whatever links lead there; what Hugging
// Face's cache keeps in `blobs` beside `snapshots` counts as lying in the snapshot. For libraries and plugins alike.
#pragma once
#include <filesystem>
#include <string>

namespace hexad {

inline bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const std::filesystem::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// Whether `file`, without links, is one of the folder's own; `folder` may be reached by links.
inline bool is_own_file(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::error_code unreadable;
  const std::filesystem::path root = std::filesystem::canonical(folder, unreadable);
  if (unreadable) return false;
  if (lies_in(file, root)) return true;
  for (std::filesystem::path part = root; part.has_relative_path(); part = part.parent_path())
    if (const std::string repository = part.parent_path().filename().string();
        part.filename() == "snapshots" && (repository.starts_with("models--") || repository.starts_with("datasets--")))
      return lies_in(file, part.parent_path() / "blobs");
  return false;
}

// Where the link folder/name leads, if that is no file of the folder's own; else empty.
inline std::filesystem::path leads_out(const std::filesystem::path& folder, const std::string& name) {
  std::error_code unreadable;
  const std::filesystem::path real = std::filesystem::canonical(folder / name, unreadable);
  return unreadable || is_own_file(real, folder) ? std::filesystem::path() : real;
}

// The line that says so.
std::string leads_out_text(const std::filesystem::path& folder, const std::string& name,
                           const std::filesystem::path& real);

// Throws Error(data) unless it is a file of the folder's own, or is not there.
void require_own_file(const std::filesystem::path& folder, const std::string& name);

// The file `real`, which was opened under folder/name, is one of the folder's own, or Error(data).
void require_own_file(const std::filesystem::path& folder, const std::string& name, const std::filesystem::path& real);
// The text of folder/name. Throws Error(data) as copy_own_file does; what is read is what was looked at.
std::string read_own_file(const std::filesystem::path& folder, const std::string& name);

// The bytes and the mode of folder/name, as the file `to`. Throws Error(data) naming what cannot be read or written, or
// that it is not the folder's own; what is copied is what was looked at.
void copy_own_file(const std::filesystem::path& folder, const std::string& name, const std::filesystem::path& to);

}  // namespace hexad
