// A whole text file.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>

namespace hexad {

// The bytes of `file`; Error(data) names the file and the reason when it cannot be opened or read.
std::string read_file(const std::filesystem::path& file);
// The same of what may be a regular file alone: nobody waits for a pipe that lies under its name.
std::string read_regular_file(const std::filesystem::path& file);

// Leaves `in`, of a file of rows, behind a byte order mark of UTF-8. Error(data) with the way out for UTF-16.
void skip_mark(std::istream& in, const std::filesystem::path& file);

// Makes `file` of these bytes, never through a link (open_file.hpp), or throws Error(data) naming it and the reason.
void write_file(const std::filesystem::path& file, std::string_view bytes);
// The same for who has words of its own: the reason, or nothing.
std::string why_not_written(const std::filesystem::path& file, std::string_view bytes, mode_t mode = 0666);
// Whether such a reason, or a message that holds one, is that of a full disk or a used-up quota: for others to mend.
bool tells_of_full_disk(std::string_view message);
// For what nobody else need read (0600, one that is there already too): configurations, and pages that show them.
void write_own_file(const std::filesystem::path& file, std::string_view bytes);

// Has a file or the entries of a directory on the disk when it returns (fsync), or throws Error(data) naming it and the
// reason: a network file system or a quota often refuses here, and not at the write. File systems without it count as
// done.
void sync_path(const std::filesystem::path& path);
// All below `root`, and itself.
void sync_tree(const std::filesystem::path& root);

}  // namespace hexad
