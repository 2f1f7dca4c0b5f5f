#include "tests/run/faults/attached_servers.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/free_port.hpp"
#include "tests/support/toy/program.hpp"

namespace faults {
namespace {

bool listens(const std::string& url) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  const bool connected = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

}  // namespace

AttachedServers::AttachedServers(int count, const std::filesystem::path& program, const std::string& model_option,
                                 const std::string& model_dir, const std::map<std::string, std::string>& environment) {
  for (int i = 0; i < count; ++i) {
    const std::string port = std::to_string(test_support::free_port());
    urls_.push_back("http://127.0.0.1:" + port);
    pids_.push_back(::fork());
    if (pids_.back() != 0) continue;
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execl(program.c_str(), program.c_str(), model_option.c_str(), model_dir.c_str(), "--port", port.c_str(), nullptr);
    ::_exit(127);
  }
  for (const std::string& url : urls_) REQUIRE_MESSAGE(toy::eventually([&] { return listens(url); }), url);
}

AttachedServers::~AttachedServers() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

}  // namespace faults
