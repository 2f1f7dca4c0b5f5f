#include "tests/run/faults/schedule.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>

namespace faults {
namespace {

constexpr size_t kMost = 512;  // faults
// Of a fault; else the process that has taken it and not written it down yet.
constexpr int64_t kOpen = 0, kNoted = -1, kHandedOn = -2;

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

// A new file's zeros are its beginning.
struct Schedule::Shared {
  std::atomic<int64_t> occasions[kMost], state[kMost], quiet_until, alone_until;
};

std::string timestamp() {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  tm local{};
  ::localtime_r(&now.tv_sec, &local);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text, sizeof text, "%s.%03d", day, static_cast<int>(now.tv_usec / 1000));
  return text;
}

Schedule::Schedule(const std::filesystem::path& folder) : folder_(folder) {
  std::ifstream file(folder / "schedule.json");
  for (const Json& entry : Json::parse(file)) {
    faults_.push_back({entry.at("name"), entry.at("point"), entry.at("kind"), entry.at("occasion"),
                       entry.value("quiet_ms", int64_t{0})});
  }
  if (faults_.size() > kMost) throw std::runtime_error("too many faults");
  const int descriptor = ::open((folder / "shared").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (descriptor >= 0 && ::ftruncate(descriptor, sizeof(Shared)) == 0)
    memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot share memory by a file of " + folder.string());
  ::close(descriptor);
  shared_ = static_cast<Shared*>(memory);
}

// A server that was ended after it had taken a fault took none.
void Schedule::open_again(size_t i) {
  int64_t state = shared_->state[i];
  if (state > 0 && ::kill(static_cast<pid_t>(state), 0) != 0) shared_->state[i].compare_exchange_strong(state, kOpen);
}

// False if it is quiet already.
bool Schedule::begin_quiet(int64_t ms) {
  int64_t until = shared_->quiet_until;
  const int64_t now = now_ms();
  return now >= until && shared_->quiet_until.compare_exchange_strong(until, now + ms);
}

const Fault* Schedule::take(const std::string& point) {
  int64_t occasion = 0;
  for (size_t i = 0; i < faults_.size(); ++i) {
    const Fault& fault = faults_[i];
    if (fault.point != point) continue;
    // Occasions are counted at the place of the point's first fault.
    if (occasion == 0) occasion = ++shared_->occasions[i];
    open_again(i);
    if (fault.occasion > occasion || shared_->state[i] != kOpen) continue;
    if (now_ms() < shared_->alone_until) return nullptr;
    if (fault.quiet_ms > 0 && !begin_quiet(fault.quiet_ms)) return nullptr;
    int64_t state = kOpen;
    if (shared_->state[i].compare_exchange_strong(state, ::getpid())) return &fault;
  }
  return nullptr;
}

void Schedule::noted(const Fault& fault) { shared_->state[&fault - faults_.data()] = kNoted; }

void Schedule::hand_on(const Fault& fault) { shared_->state[&fault - faults_.data()] = kHandedOn; }

const Fault* Schedule::take_handed_on() {
  for (size_t i = 0; i < faults_.size(); ++i) {
    int64_t state = kHandedOn;
    if (shared_->state[i].compare_exchange_strong(state, ::getpid())) return &faults_[i];
  }
  return nullptr;
}

void Schedule::stay_alone(int64_t ms) { shared_->alone_until = now_ms() + ms; }

void Schedule::note(const char* file, const Json& line) const {
  const std::string text = line.dump() + "\n";
  const int descriptor = ::open((folder_ / file).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  (void)!::write(descriptor, text.data(), text.size());
  ::close(descriptor);
}

}  // namespace faults
