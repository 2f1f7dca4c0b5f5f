#include "core/config/declaration/check_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hexad/check.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>

#include "core/base/file.hpp"
#include "core/base/json.hpp"
#include "core/manifest/permissions.hpp"
#include "core/manifest/sha256.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr auto kLongest = std::chrono::milliseconds(500);
constexpr rlim_t kMostMemory = rlim_t{256} << 20;
constexpr size_t kMostFindings = 100, kLongestFinding = 4096, kMostOutput = 2 << 20;

// ---- In the child.

struct Said {
  Json findings = Json::array(), names = Json::object();

  static std::string bounded(const char* text) { return std::string(text, ::strnlen(text, kLongestFinding)); }
  static void finding(void* ctx, int32_t severity, const char* key, const char* message) {
    Json& list = static_cast<Said*>(ctx)->findings;
    if (key && message && list.size() < kMostFindings) list.push_back({severity, bounded(key), bounded(message)});
  }
  static void name(void* ctx, const char* name, const char* value) {
    Json& names = static_cast<Said*>(ctx)->names;
    if (name && value && names.size() < kMostFindings) names[bounded(name)] = try_parse_json<Json>(bounded(value));
  }
};

// Room for so much more than the program has.
void limit_memory() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMostMemory;
  const rlimit memory{most, most}, none{0, 0};
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CORE, &none);
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

[[noreturn]] void serve(const std::string& library, const std::string& input, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  limit_memory();
  Json answer;
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = opened ? ::dlsym(opened, "hexad_plugin_check_v1") : nullptr;
  if (!symbol) {
    const char* const error = ::dlerror();
    answer["problem"] = error ? error : "it has no hexad_plugin_check_v1";
  } else {
    Said said;
    const hexad_check_host host{sizeof(hexad_check_host), 0, &said, Said::finding, Said::name};
    const int32_t code = reinterpret_cast<hexad_check_fn>(symbol)(&host, input.c_str());
    if (code != 0) answer["problem"] = fmt::format("hexad_plugin_check_v1 returned {}", code);
    answer["findings"] = std::move(said.findings);
    answer["names"] = std::move(said.names);
  }
  write_all(out, json_text(answer));
  ::_exit(0);
}

// ---- In this process.

struct Ended {
  std::string output;
  std::string problem;  // what it did instead of answering
};

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

// Reads until the child closes its end, or the time is over.
Ended wait_for(pid_t child, int in) {
  Ended ended;
  const auto end = Clock::now() + kLongest;
  char buffer[16384];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{in, POLLIN, 0};
    const int got = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (got < 0 && errno == EINTR) continue;
    const ssize_t size = got > 0 ? ::read(in, buffer, sizeof buffer) : -1;
    if (size > 0 && ended.output.size() < kMostOutput) {
      ended.output.append(buffer, static_cast<size_t>(size));
      continue;
    }
    if (size != 0) ended.problem = size > 0 ? "said more than 2 MiB" : "did not end within 500 ms";
    break;
  }
  if (!ended.problem.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (ended.problem.empty() && status != 0) ended.problem = describe(status);
  return ended;
}

Ended run(const std::string& library, const std::string& input) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return {"", fmt::format("cannot be run: {}", std::strerror(errno))};
  const pid_t child = ::fork();
  if (child == 0) serve(library, input, pipe[1]);
  ::close(pipe[1]);
  Ended ended =
      child > 0 ? wait_for(child, pipe[0]) : Ended{"", fmt::format("cannot be run: {}", std::strerror(errno))};
  ::close(pipe[0]);
  return ended;
}

std::string input_of(const Scope& scope) {
  const Node* block = scope.root().find(scope.block());
  Json world = Json::object();
  const auto put = [&](const char* name, const std::optional<int64_t>& value) {
    if (value) world[name] = *value;
  };
  put("ranks", scope.world().ranks);
  put("train_ranks", scope.world().train_ranks);
  put("generate_ranks", scope.world().generate_ranks);
  put("nodes", scope.world().nodes);
  put("ranks_per_node", scope.world().ranks_per_node);
  return json_text(
      Json{{"section", block ? block->to_json() : Json::object()}, {"world", world}, {"model", scope.model()}});
}

// Why the file is not to be opened; "" if it is what the manifest says.
std::string refusal(const std::filesystem::path& file, const std::string& sha256, bool trusted, bool allow_insecure) {
  std::string bytes;
  try {
    bytes = read_file(file);
  } catch (const std::exception& error) {
    return error.what();
  }
  if (plugin::sha256_hex(std::as_bytes(std::span(bytes))) != sha256)
    return "its digest is not the manifest's: build or copy the plugin, its check library and its manifest together";
  if (trusted || allow_insecure) return "";
  return plugin::insecure(file).value_or("");
}

bool is_key(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_finding(const Json& each) {
  return each.is_array() && each.size() == 3 && each[0].is_number_integer() && each[1].is_string() &&
         each[2].is_string() && is_key(each[1].get<std::string>());
}

Location place_in(const Node& root, std::string path) {
  for (; !path.empty(); path.resize(path.rfind('.') == path.npos ? 0 : path.rfind('.'))) {
    if (const Node* node = root.find(path)) return node->location();
  }
  return root.location();
}

Problem problem_of(const Json& finding, const Scope& scope) {
  const std::string path = scope.block() + "." + finding[1].get<std::string>();
  const bool notice = finding[0] == HEXAD_CHECK_NOTICE;
  return {notice ? Problem::Severity::notice : Problem::Severity::error, place_in(scope.root(), path), path,
          finding[2].get<std::string>()};
}

}  // namespace

Checked run_check_library(const Chosen& chosen, const Scope& scope, bool allow_insecure) {
  const plugin::Candidate& candidate = chosen.installed->candidate();
  const plugin::Manifest& manifest = *candidate.manifest;
  if (manifest.check_library.empty()) return {};
  const std::filesystem::path file = candidate.manifest_path.parent_path() / manifest.check_library;
  Checked out;
  const auto faulty = [&](const std::string& what) {
    out.problems.push_back({Problem::Severity::error, place_in(scope.root(), scope.block()), scope.block(),
                            fmt::format("the check library of '{}' ({}) {}", manifest.name, file.string(), what)});
    return out;
  };
  if (const std::string why = refusal(file, manifest.check_sha256, candidate.trusted, allow_insecure); !why.empty())
    return faulty("is refused: " + why);
  const Ended ended = run(file.string(), input_of(scope));
  if (!ended.problem.empty()) return faulty(ended.problem + ": the plugin is faulty, tell its author");
  const Json answer = try_parse_json<Json>(ended.output);
  const Json findings = answer.is_object() ? answer.value("findings", Json::array()) : Json();
  const Json names = answer.is_object() ? answer.value("names", Json::object()) : Json();
  if (!findings.is_array() || !names.is_object())
    return faulty("answered nonsense: the plugin is faulty, tell its author");
  for (const Json& each : findings) {
    if (is_finding(each))
      out.problems.push_back(problem_of(each, scope));
    else
      faulty(fmt::format("has a finding about no key: {}", json_text(each)));
  }
  for (const auto& entry : names.items()) {
    if (entry.value().is_primitive() && !entry.value().is_discarded())
      out.names.emplace(entry.key(), json_value(entry.value()));
    else
      faulty(fmt::format("gives the name {} the value {}, wanted a number, a text, true, false or null", entry.key(),
                         json_text(entry.value())));
  }
  if (answer.contains("problem")) faulty("failed: " + json_text(answer.at("problem")));
  return out;
}

}  // namespace hexad::config
