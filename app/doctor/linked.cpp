#include "app/doctor/linked.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "app/doctor/small_file.hpp"
#include "lib/base/text.hpp"
#include "lib/process/child.hpp"
#include "lib/process/descriptor.hpp"
#include "lib/process/start.hpp"

namespace hexad::doctor {
namespace {

namespace fs = std::filesystem;
using process::Clock;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kLevels = 3;  // from /usr/lib/x86_64-linux-gnu up to /usr

// The loader that has loaded this program; empty in one that needs none.
std::string loader() {
  Dl_info info = {};
  const unsigned long base = ::getauxval(AT_BASE);
  return base != 0 && ::dladdr(std::bit_cast<const void*>(base), &info) != 0 ? info.dli_fname : "";
}

// What a program writes until it ends; false when the time is over.
bool read_until(const process::Descriptor& from, Clock::time_point end, std::string& text) {
  char buffer[16384];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready = {from.get(), POLLIN, 0};
    const int polled = ::poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno != EINTR) return false;
    if (polled <= 0) continue;
    const ssize_t count = ::read(from.get(), buffer, sizeof buffer);
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return count == 0;
  }
}

// Ours with more at its end.
std::string library_path(const std::vector<fs::path>& folders) {
  const char* ours = std::getenv("LD_LIBRARY_PATH");
  std::string list = ours ? ours : "";
  for (const fs::path& folder : folders) list += (list.empty() ? "" : ":") + folder.string();
  return list;
}

// "	libc10.so => /path/libc10.so (0x7f...)", "	libx.so => not found".
void read_line(std::string_view line, std::vector<LinkedLibrary>& libraries) {
  const size_t arrow = line.find(" => ");
  if (arrow == line.npos) return;  // the loader itself, the kernel's own
  std::string_view path = line.substr(arrow + 4);
  path = path.substr(0, std::min(path.rfind(" (0x"), path.size()));
  libraries.push_back({std::string(trimmed(line.substr(0, arrow))), path == "not found" ? "" : std::string(path)});
}

std::string defined(std::string_view header, const std::string& name) {
  const std::optional<uint64_t> number = leading_number(line_behind(header, "#define " + name));
  return number ? std::to_string(*number) : "";
}

}  // namespace

const LinkedLibrary* Linked::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(libraries, [&](const LinkedLibrary& each) { return each.name.starts_with(name); });
  return found == libraries.end() ? nullptr : &*found;
}

Linked linked(const fs::path& library, const std::vector<fs::path>& folders) {
  const std::string program = loader();
  if (program.empty()) return {{}, "this program has no loader"};
  auto [output, output_end] = process::make_pipe();
  process::Child child(
      process::start({.arguments = {program, fs::absolute(library).string()},
                      .variables = {{"LD_TRACE_LOADED_OBJECTS", "1"}, {"LD_LIBRARY_PATH", library_path(folders)}},
                      .setup = {.descriptors = {{output_end.get(), STDOUT_FILENO}, {output_end.get(), STDERR_FILENO}},
                                .dies_with_us = true}}));
  output_end.close();
  std::string text;
  const auto end = Clock::now() + kPatience;
  const bool whole = read_until(output, end, text);
  const std::optional<process::Exit> exit = whole ? child.wait_until(end) : std::nullopt;
  child.end();
  if (!exit) return {{}, program + " did not answer within 10 s"};
  if (*exit != process::Exit{}) return {{}, std::string(trimmed(text))};
  Linked result;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t line = std::min(rest.find('\n'), rest.size());
    read_line(rest.substr(0, line), result.libraries);
    rest.remove_prefix(std::min(line + 1, rest.size()));
  }
  return result;
}

std::string version_of(const fs::path& library, const std::string& header, const std::vector<std::string>& names) {
  std::error_code unknown;
  const fs::path real = fs::canonical(library, unknown);
  const std::string file = real.filename().string();
  const size_t at = file.find(".so.");
  if (at != file.npos && std::ranges::count(file.substr(at + 4), '.') >= 2) return file.substr(at + 4);
  fs::path folder = real.parent_path();
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    const std::optional<std::string> text = small_file(folder / "include" / header);
    if (!text) continue;
    std::vector<std::string> numbers;
    for (const std::string& name : names) numbers.push_back(defined(*text, name));
    if (std::ranges::find(numbers, "") == numbers.end()) return joined(numbers, ".");
  }
  return "";
}

}  // namespace hexad::doctor
