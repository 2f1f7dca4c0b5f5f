#include "core/config/declaration/check/library.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <hexad/check.h>

#include <csignal>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/thrown.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/utf8.hpp"
#include "lib/elf/library.hpp"
#include "lib/elf/links.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostFindings = 100, kLongestFinding = 4096;

struct Said {
  Json findings = Json::array(), names = Json::object();

  static std::string bounded(const char* text) {
    return std::string(utf8_front({text, ::strnlen(text, kLongestFinding + 1)}, kLongestFinding));
  }
  static void finding(void* ctx, int32_t severity, const char* key, const char* message) {
    Json& list = static_cast<Said*>(ctx)->findings;
    if (key && message && list.size() < kMostFindings) list.push_back({severity, bounded(key), bounded(message)});
  }
  static void name(void* ctx, const char* name, const char* value) {
    Json& names = static_cast<Said*>(ctx)->names;
    if (name && value && names.size() < kMostFindings) names[bounded(name)] = try_parse_json<Json>(bounded(value));
  }
};

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

// All that comes until the other side has ended.
std::string read_all(int fd) {
  std::string text;
  char buffer[16384];
  for (ssize_t size; (size = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(size));
  return text;
}

// Why the file is not to be opened; "" if it is what the manifest says.
std::string refusal(const ResolvedFile& file, const std::string& sha256, bool trusted) {
  constexpr uint64_t kMost = uint64_t{64} << 20;
  if (file.size() > kMost) return fmt::format("it has {} bytes, a check library has at most {}", file.size(), kMost);
  std::vector<std::byte> bytes(file.size());
  if (!file.read(bytes) || sha256_hex(bytes) != sha256)
    return "its digest is not the manifest's: build or copy the plugin, its check library and its manifest together";
  return trusted ? "" : elf::insecure_needed(file).value_or("");
}

// How the call failed; "" if it did not.
std::string failure_of(hexad_check_fn check, const hexad_check_host& host, const std::string& input) {
  try {
    const int32_t code = check(&host, input.c_str());
    return code == 0 ? "" : fmt::format("failed: hexad_plugin_check_v1 returned {}", code);
  } catch (...) {
    return fmt::format("threw a C++ exception across the ABI: {}: the plugin is faulty, tell its author",
                       thrown_text());
  }
}

Json called(hexad_check_fn check, const std::string& input) {
  Said said;
  const hexad_check_host host{sizeof(hexad_check_host), 0, &said, Said::finding, Said::name};
  const std::string failure = failure_of(check, host, input);
  Json answer{{"findings", std::move(said.findings)}, {"names", std::move(said.names)}};
  if (!failure.empty()) answer["problem"] = failure;
  return answer;
}

// The library is looked at and opened while the parent still makes the input.
Json answer_of(const ResolvedFile& library, const std::string& sha256, bool trusted, int parent) {
  void* opened = nullptr;
  std::string failure = "undefined symbol: hexad_plugin_check_v1";
  try {
    if (const std::string why = refusal(library, sha256, trusted); !why.empty())
      return {{"problem", "is refused: " + why}};
    set_up_unwinder();
    opened = elf::open_library(library, RTLD_NOW | RTLD_LOCAL, failure);
  } catch (const Error& error) {
    return {{"problem", fmt::format("is refused: {}", error.what())}};
  }
  void* const symbol = opened ? ::dlsym(opened, "hexad_plugin_check_v1") : nullptr;
  if (symbol) return called(reinterpret_cast<hexad_check_fn>(symbol), read_all(parent));
  return {{"problem", "failed: " + failure}};
}

}  // namespace

void serve_check(const ResolvedFile& library, const std::string& sha256, bool trusted, int parent) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
  write_all(parent, json_text(answer_of(library, sha256, trusted, parent)));
  ::shutdown(parent, SHUT_WR);  // the parent does not wait until this process is gone
}

}  // namespace hexad::config
