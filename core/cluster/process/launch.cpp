#include "core/cluster/process/launch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "lib/base/error.hpp"
#include "lib/base/file/open_file.hpp"
#include "lib/base/file/private_file.hpp"
#include "lib/base/json.hpp"

namespace hexad::cluster {
namespace {

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, const char* launcher) {
  const std::string value = text(name);
  int result = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error == std::errc() && end == value.data() + value.size() && result >= 0) return result;
  fail(ErrorKind::config, "{} has started this process, and ${} is '{}', wanted a number from 0", launcher, name,
       value);
}

Launch checked(Launch launch) {
  if (launch.rank >= launch.world || launch.local_rank >= launch.local_world || launch.local_world > launch.world)
    fail(ErrorKind::config, "{} says rank {} of {} and local rank {} of {}: they do not fit each other",
         launch.launcher, launch.rank, launch.world, launch.local_rank, launch.local_world);
  return launch;
}

Launch of_torchrun() {
  const char* name = "torchrun";
  const std::string job = text("MASTER_ADDR") + "-" + text("MASTER_PORT") + "-" + text("TORCHELASTIC_RUN_ID") + "-" +
                          text("TORCHELASTIC_RESTART_COUNT");
  return {name,
          number("RANK", name),
          number("WORLD_SIZE", name),
          number("LOCAL_RANK", name),
          number("LOCAL_WORLD_SIZE", name),
          job};
}

// "4(x2),3" is 4, 4 and 3 tasks on three nodes.
int tasks_of_node(const std::string& spec, int node) {
  int at = 0;
  for (size_t begin = 0; begin < spec.size();) {
    size_t end = spec.find(',', begin);
    if (end == std::string::npos) end = spec.size();
    const std::string part = spec.substr(begin, end - begin);
    const int tasks = std::atoi(part.c_str());
    const size_t times = part.find("(x");
    at += times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    if (node < at) return tasks;
    begin = end + 1;
  }
  return 0;
}

Launch of_srun() {
  const char* name = "srun";
  const int node = number("SLURM_NODEID", name);
  const std::string job = text("SLURM_JOB_ID") + "." + text("SLURM_STEP_ID") + "-" + text("SLURM_RESTART_COUNT");
  return {name,
          number("SLURM_PROCID", name),
          number("SLURM_STEP_NUM_TASKS", name),
          number("SLURM_LOCALID", name),
          tasks_of_node(text("SLURM_STEP_TASKS_PER_NODE"), node),
          job};
}

Launch of_mpirun() {
  const char* name = "mpirun";
  return {name,
          number("OMPI_COMM_WORLD_RANK", name),
          number("OMPI_COMM_WORLD_SIZE", name),
          number("OMPI_COMM_WORLD_LOCAL_RANK", name),
          number("OMPI_COMM_WORLD_LOCAL_SIZE", name),
          text("PMIX_NAMESPACE") + "-" + text("OMPI_MCA_orte_precondition_transports")};
}

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A folder for the user alone, in one that others may write to.
fs::path folder_in(const fs::path& folder) { return folder / ".meeting"; }

std::string name_of(const Launch& launch) {
  std::string name = "meeting-" + launch.launcher + "-" + launch.job;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return name;
}

// Makes the file of this text, in a folder that another run's end may remove at any moment. Throws why it cannot.
void leave(const std::string& text, const fs::path& file) {
  const fs::path temporary = file.string() + ".tmp";
  for (int tried = 0; tried < 10; ++tried) {
    make_private_folder(file.parent_path());
    ::unlink(temporary.c_str());
    const int fd = open_to_write(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) throw Error(ErrorKind::worker, why_not_opened(errno));
    const ssize_t count = ::write(fd, text.data(), text.size());
    int reason = count < 0 ? errno : count < static_cast<ssize_t>(text.size()) ? ENOSPC : 0;
    ::close(fd);
    if (reason == 0 && ::rename(temporary.c_str(), file.c_str()) != 0) reason = errno;
    if (reason == 0) return;
    ::unlink(temporary.c_str());
    throw Error(ErrorKind::worker, why_not_opened(reason));
  }
  throw Error(ErrorKind::worker, "its folder is removed again and again");
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

std::optional<Launch> launched() {
  std::optional<Launch> launch;
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) {
    launch = of_mpirun();
  } else if (std::getenv("TORCHELASTIC_RUN_ID") || (std::getenv("RANK") && std::getenv("LOCAL_WORLD_SIZE"))) {
    launch = of_torchrun();
  } else if (std::getenv("SLURM_STEP_NUM_TASKS") && std::getenv("SLURM_PROCID")) {
    launch = of_srun();
  }
  if (!launch || launch->world <= 1) return std::nullopt;
  return checked(*launch);
}

Meeting::Meeting(const Launch& launch, const fs::path& folder, const std::string& endpoint,
                 const std::string& server_key)
    : file_(folder_in(folder) / name_of(launch)) {
  const Json place = {{"port", std::stoi(endpoint.substr(endpoint.rfind(':') + 1))},
                      {"addresses", addresses(launch.one_host())},
                      {"server_key", server_key}};
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  try {
    leave(json_text(place), file_);
  } catch (const Error& error) {
    fail(ErrorKind::worker, "cannot write {}, by which the other processes of {} find this one: {}", file_.string(),
         launch.launcher, error.what());
  }
}

Meeting::~Meeting() {
  std::error_code ignored;
  fs::remove(file_, ignored);
  fs::remove(file_.parent_path(), ignored);  // unless another run meets there
}

Bootstrap meet(const Launch& launch, const fs::path& folder, double timeout_s, const std::atomic<int>* interrupted) {
  constexpr auto kGrace = std::chrono::seconds(5);  // the first one may not have got the signal, and be about to come
  using Clock = std::chrono::steady_clock;
  const fs::path place_of = folder_in(folder);
  const std::string name = name_of(launch);
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  std::string lacked = "is not there";
  auto not_interrupted = Clock::now();
  for (; Clock::now() < deadline; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    if (!interrupted || *interrupted == 0) not_interrupted = Clock::now();
    if (Clock::now() - not_interrupted > kGrace) throw Interrupted("interrupted while it waited for the first process");
    std::optional<std::string> text;
    try {
      text = read_private_file(place_of, name);
    } catch (const Error& error) {  // the first process may yet put its own there
      lacked = std::string("is not believed: ") + error.what();
    }
    if (!text) continue;
    const Json place = try_parse_json<Json>(*text);
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
       launch.rank, launch.world, launch.launcher, timeout_s, (place_of / name).string(), lacked);
}

}  // namespace hexad::cluster
