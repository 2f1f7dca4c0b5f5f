#include "core/cluster/process/meeting.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace hexad::cluster {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path file_of(const Launch& launch, const fs::path& folder) {
  std::string name = "meeting-" + launch.launcher + "-" + launch.job;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return folder / name;
}

// IPv4 addresses that others may reach, or loopback where all are on one host.
std::vector<std::string> addresses(bool one_host) {
  if (one_host) return {"127.0.0.1"};
  std::vector<std::string> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) ||
        !(one->ifa_flags & IFF_UP))
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) found.emplace_back(text);
  }
  ::freeifaddrs(all);
  return found;
}

// Whether something listens there.
bool answers(const std::string& address, int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  bool good = ::inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1;
  if (good && ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    pollfd ready{fd, POLLOUT, 0};
    int error = 0;
    socklen_t size = sizeof error;
    good = errno == EINPROGRESS && ::poll(&ready, 1, 1000) == 1 &&
           ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }
  ::close(fd);
  return good;
}

}  // namespace

Meeting::Meeting(const Launch& launch, const fs::path& folder, const std::string& endpoint,
                 const std::string& server_key)
    : file_(file_of(launch, folder)) {
  const Json place = {{"port", std::stoi(endpoint.substr(endpoint.rfind(':') + 1))},
                      {"addresses", addresses(launch.one_host())},
                      {"server_key", server_key}};
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const fs::path temporary = file_.string() + ".tmp";
  fs::remove(temporary, ignored);
  const std::string text = json_text(place);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  if (!written || ::rename(temporary.c_str(), file_.c_str()) != 0)
    fail(ErrorKind::worker, "cannot write {}, by which the other processes of {} find this one", file_.string(),
         launch.launcher);
}

Meeting::~Meeting() {
  std::error_code ignored;
  fs::remove(file_, ignored);
}

Bootstrap meet(const Launch& launch, const fs::path& folder, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const fs::path file = file_of(launch, folder);
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  std::string lacked = "is not there";
  for (; Clock::now() < deadline; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    if (!fs::exists(file)) continue;
    const Json place = try_parse_json<Json>(read_file(file));
    if (!place.is_object()) continue;  // it is of an earlier start, and being replaced
    for (const std::string address : place.at("addresses")) {
      if (!answers(address, place.at("port"))) continue;
      Bootstrap bootstrap;
      bootstrap.endpoint = fmt::format("tcp://{}:{}", address, place.at("port").get<int>());
      bootstrap.server_key = place.at("server_key");
      bootstrap.rank = launch.rank;
      bootstrap.local_rank = launch.local_rank, bootstrap.local_world = launch.local_world;
      bootstrap.controller = address;
      return bootstrap;
    }
    lacked = fmt::format("names {}, port {}, where nobody answers", json_text(place.at("addresses")),
                         place.at("port").get<int>());
  }
  fail(ErrorKind::worker,
       "rank {} of {} ({}) has not found the first process within {:.0f} s: {} {}. Wanted: a logger.log_dir that all "
       "hosts see, and a first process that is running",
       launch.rank, launch.world, launch.launcher, timeout_s, file.string(), lacked);
}

}  // namespace hexad::cluster
