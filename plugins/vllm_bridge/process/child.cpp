#include "plugins/vllm_bridge/process/child.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <hexad/services.hpp>
#include <system_error>

extern char** environ;

namespace hexad::vllm {
namespace {

// Its standard input is the pipe, $0 the folder to remove. The reader outlives the server until Child::ended.
constexpr const char* kLeader =
    "exec 3<&0 </dev/null; "
    "\"$@\" 3<&- & server=$!; "
    "(read -r _ <&3; [ \"$0\" = - ] || rm -rf \"$0\"; kill -9 0) & "
    "exec 3<&-; wait $server; code=$?; "
    "echo \"hexad: the server ended with code $code\"; exit $code";

[[noreturn]] void give_up(int code, const char* what) { throw std::system_error(code, std::generic_category(), what); }

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text(*entry);
    if (!extra.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : extra) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct SpawnActions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnActions() { posix_spawn_file_actions_init(&files), posix_spawnattr_init(&attributes); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&files), posix_spawnattr_destroy(&attributes); }
};

}  // namespace

Child::Child(const Command& command) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) give_up(errno, "pipe2");
  SpawnActions actions;
  posix_spawn_file_actions_adddup2(&actions.files, pipe[0], 0);
  posix_spawn_file_actions_addopen(&actions.files, 1, command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions.files, 1, 2);
  posix_spawnattr_setflags(&actions.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&actions.attributes, 0);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setsigdefault(&actions.attributes, &defaults);
  std::vector<std::string> arguments = {"/bin/sh", "-c", kLeader, command.scratch.empty() ? "-" : command.scratch};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment = merged_environment(command.environment);
  const int error = ::posix_spawn(&pid_, "/bin/sh", &actions.files, &actions.attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  ::close(pipe[0]);
  life_ = pipe[1];
  if (error != 0) {
    ::close(life_);
    give_up(error, ("starting a server with output to " + command.log).c_str());
  }
}

Child::~Child() {
  if (!ended_) ::kill(-pid_, SIGKILL);
  ::close(life_);
  if (!ended_) ::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Child::ended() {
  if (ended_) return ended_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  ended_ =
      WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
  ::kill(-pid_, SIGKILL);  // helpers of the server that outlived it
  return ended_;
}

std::string tail_of(const std::string& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<size_t>(file.tellg()), count = std::min(size, bytes);
  std::string text(count, '\0');
  file.seekg(static_cast<std::streamoff>(size - count));
  file.read(text.data(), static_cast<std::streamsize>(count));
  return text;
}

int free_port(int64_t low, int64_t high, int64_t start) {
  const int64_t count = high - low + 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto port = static_cast<int>(low + (start + i) % count);
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free = ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(descriptor);
    if (free) return port;
  }
  sdk::fail(HEXAD_RESOURCE_EXHAUSTED,
            "port_range_low and port_range_high: all ports from %lld to %lld are taken, wanted a free one for a vLLM "
            "server",
            static_cast<long long>(low), static_cast<long long>(high));
}

std::string random_key() {
  unsigned char bytes[32];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) give_up(errno, "getrandom");
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

}  // namespace hexad::vllm
