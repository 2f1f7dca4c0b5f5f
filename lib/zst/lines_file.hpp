// Files of lines that are text, or where they are long a frame of zstd: NAME or NAME.zst.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hexad::zst {

// So much text stays text, for every tool to read; more is compressed.
constexpr size_t kMostPlainBytes = size_t{1} << 20;

// Makes `folder`/`name` of `count` lines, each asked for once, in order, without its end. Memory does not grow with
// their number. A disk that is full throws DiskFull and leaves no file; another error throws Error(data).
void write_lines(const std::filesystem::path& folder, const std::string& name, int64_t count,
                 const std::function<std::string(int64_t)>& line);

// `file` or its compressed form, whichever is there.
std::optional<std::filesystem::path> find_lines(const std::filesystem::path& file);

// Its lines in order, each without its end, until `take` returns false; the last may be a part of one (its writer was
// killed). Memory does not grow with their number. Throws Error(data) if it cannot be read.
void read_lines(const std::filesystem::path& found, const std::function<bool(std::string_view)>& take);

// About how many bytes its text has.
size_t text_bytes(const std::filesystem::path& found);

}  // namespace hexad::zst
