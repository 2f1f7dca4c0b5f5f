// Where a process listens, and connections that say nothing.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace test_support {

struct Place {
  std::string address;  // as the kernel writes it: "0100007F" is 127.0.0.1
  int port = 0;
};

constexpr const char* kLoopback = "0100007F";

// The TCP ports at which a process listens.
inline std::vector<Place> listening(pid_t pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  std::set<std::string> sockets;  // their inodes
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd", ignored)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::vector<Place> places;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream in(proc + table);
    std::string line;
    for (std::getline(in, line); std::getline(in, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      const size_t colon = local.find(':');
      if (state == "0A" && sockets.contains(inode))
        places.push_back({local.substr(0, colon), std::stoi(local.substr(colon + 1), nullptr, 16)});
    }
  }
  return places;
}

// Connections to a port of loopback that say nothing. Whoever is not let in waits on.
class Idlers {
 public:
  Idlers(int port, int count) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (fd < 0) break;
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
        ::close(fd);
        break;
      }
      sockets_.push_back(fd);
    }
  }
  ~Idlers() {
    for (const int fd : sockets_) ::close(fd);
  }
  Idlers(const Idlers&) = delete;
  size_t size() const { return sockets_.size(); }

  // How many the kernel of the other side has taken in.
  size_t let_in() const {
    size_t count = 0;
    for (const int fd : sockets_) {
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      count += ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    }
    return count;
  }

 private:
  std::vector<int> sockets_;
};

// Descriptors that this process has open.
inline size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace test_support
