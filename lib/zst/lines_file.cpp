#include "lib/zst/lines_file.hpp"

#include "lib/base/file/append_file.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/zst/frame.hpp"

namespace hexad::zst {
namespace {

namespace fs = std::filesystem;

constexpr size_t kUsualRatio = 4;  // of what is written here

// Lines from the first on, as many as text may have.
std::string front(int64_t count, const std::function<std::string(int64_t)>& line, int64_t& next) {
  std::string text;
  while (next < count && text.size() <= kMostPlainBytes) text += line(next++) + "\n";
  return text;
}

void write_frame(const fs::path& path, std::string text, int64_t next, int64_t count,
                 const std::function<std::string(int64_t)>& line) {
  AppendFile file(path);
  Frame frame([&](std::string_view bytes) { file.append(bytes); });
  frame.add(text);
  for (; next < count; ++next) frame.add(line(next) + "\n");
  frame.end();
}

}  // namespace

void write_lines(const fs::path& folder, const std::string& name, int64_t count,
                 const std::function<std::string(int64_t)>& line) {
  int64_t next = 0;
  std::string text = front(count, line, next);
  const bool is_plain = text.size() <= kMostPlainBytes;
  const fs::path path = folder / (is_plain ? name : name + ".zst");
  try {
    if (is_plain)
      AppendFile(path).append(text);
    else
      write_frame(path, std::move(text), next, count, line);
  } catch (const DiskFull&) {
    std::error_code error;
    fs::remove(path, error);  // an empty file says that there were no lines
    throw;
  }
}

std::optional<fs::path> find_lines(const fs::path& file) {
  std::error_code none;
  for (const char* end : {"", ".zst"}) {
    if (const fs::path found = file.string() + end; fs::exists(found, none)) return found;
  }
  return std::nullopt;
}

void read_lines(const fs::path& found, const std::function<bool(std::string_view)>& take) {
  std::string line;
  bool goes_on = true;
  if (found.extension() != ".zst") {
    InputFile in(found);
    while (goes_on && std::getline(in, line)) goes_on = take(line);
    return;
  }
  each_part(found, [&](std::string_view part) {
    for (size_t end; goes_on && (end = part.find('\n')) != std::string_view::npos; part.remove_prefix(end + 1)) {
      goes_on = take(line.append(part.substr(0, end)));
      line.clear();
    }
    if (goes_on) line.append(part);
    return goes_on;
  });
  if (!line.empty()) take(line);
}

size_t text_bytes(const fs::path& found) {
  return fs::file_size(found) * (found.extension() == ".zst" ? kUsualRatio : 1);
}

}  // namespace hexad::zst
