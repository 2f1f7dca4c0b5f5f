#include "lib/server/child.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "lib/process/start.hpp"

namespace hexad::server {
namespace {

// Its standard input is the pipe, $0 the folder to remove. The reader outlives the server until Child::ended.
constexpr const char* kLeader =
    "exec 3<&0 </dev/null; "
    "\"$@\" 3<&- & server=$!; "
    "(read -r _ <&3; [ \"$0\" = - ] || rm -rf \"$0\"; kill -9 0) & "
    "exec 3<&-; wait $server; code=$?; "
    "echo \"hexad: the server ended with code $code\"; exit $code";

}  // namespace

Child::Child(const Command& command) {
  auto [life_end, life] = process::make_pipe();
  process::Command leader = {.arguments = {"/bin/sh", "-c", kLeader, command.scratch.empty() ? "-" : command.scratch},
                             .variables = command.environment};
  leader.arguments.insert(leader.arguments.end(), command.arguments.begin(), command.arguments.end());
  try {
    const process::Descriptor log = process::open_log(command.log, 0600);
    leader.setup.descriptors = {{life_end.get(), 0}, {log.get(), 1}, {log.get(), 2}};
    leader_ = process::Child(process::start(leader));
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "starting a server with output to " + command.log);
  }
  life_ = std::move(life);
}

std::optional<std::string> Child::ended() {
  const std::optional<process::Exit> exit = leader_.wait_until({});  // and ends helpers of the server that outlived it
  if (!exit) return std::nullopt;
  return exit->signal == 0 ? fmt::format("exit code {}", exit->code) : fmt::format("signal {}", exit->signal);
}

std::string tail_of(const std::string& path, size_t bytes) {
  const process::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return "";
  const auto size = static_cast<size_t>(std::max<off_t>(status.st_size, 0));
  std::string text(std::min(size, bytes), '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(size - text.size()));
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

std::optional<int> free_port(int64_t low, int64_t high, int64_t start) {
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
  return std::nullopt;
}

std::string random_key() {
  unsigned char bytes[32];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string key;
  for (const unsigned char byte : bytes) key += fmt::format("{:02x}", byte);
  return key;
}

}  // namespace hexad::server
