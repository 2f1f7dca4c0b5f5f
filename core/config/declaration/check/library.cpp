#include "core/config/declaration/check/library.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hexad/check.h>

#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/process/start.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr auto kLongest = std::chrono::milliseconds(500);
constexpr size_t kMostOutput = 2 << 20;
constexpr rlim_t kMostMemory = rlim_t{256} << 20;

struct Ended {
  std::string output;
  std::string problem;  // what it did instead of answering
};

// Room for so much more than the program has, and nothing of the library's on the terminal.
process::Setup setup_of(const process::Descriptor& nothing) {
  size_t pages = 0;  // of all kinds; they come first
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMostMemory;
  return {
      .descriptors = {{nothing.get(), STDIN_FILENO}, {nothing.get(), STDOUT_FILENO}, {nothing.get(), STDERR_FILENO}},
      .limits = {{RLIMIT_AS, most}, {RLIMIT_CORE, 0}},
      .dies_with_us = true};
}

// Sends the input, and reads until the child closes its end or the time is over.
class Exchange {
 public:
  Exchange(int child, std::string input) : child_(child), input_(std::move(input)) {}

  Ended run() {
    while (ended_.problem.empty()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count();
      pollfd ready{child_, static_cast<short>(POLLIN | (sent_ ? 0 : POLLOUT)), 0};
      const int got = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) ended_.problem = "did not end within 500 ms";
      if (got > 0 && (ready.revents & POLLOUT) && !sent_) send();
      if (got > 0 && (ready.revents & ~POLLOUT) && !receive()) break;
    }
    return std::move(ended_);
  }

 private:
  // What cannot be sent, to a child that has ended, is not missed.
  void send() {
    const std::string_view rest = std::string_view(input_).substr(at_);
    const ssize_t size = ::send(child_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    at_ += static_cast<size_t>(std::max<ssize_t>(size, 0));
    sent_ = size < 0 || at_ == input_.size();
    if (sent_) ::shutdown(child_, SHUT_WR);
  }
  bool receive() {
    char buffer[16384];
    const ssize_t size = ::read(child_, buffer, sizeof buffer);
    if (size <= 0) return size < 0 && errno == EINTR;
    ended_.output.append(buffer, static_cast<size_t>(size));
    if (ended_.output.size() > kMostOutput) ended_.problem = "said more than 2 MiB";
    return true;
  }

  int child_;
  std::string input_;
  size_t at_ = 0;
  bool sent_ = false;
  Ended ended_;
  Clock::time_point end_ = Clock::now() + kLongest;
};

std::string input_of(const Scope& scope) {
  const yaml::Node* block = scope.root().find(scope.block());
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

bool is_key(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_finding(const Json& each) {
  return each.is_array() && each.size() == 3 && each[0].is_number_integer() && each[1].is_string() &&
         each[2].is_string() && is_key(each[1].get<std::string>());
}

Problem problem_of(const Json& finding, const Scope& scope) {
  const std::string key = finding[1].get<std::string>();
  const std::string path = key.starts_with("run.") ? key.substr(4) : scope.block() + "." + key;
  const bool notice = finding[0] == HEXAD_CHECK_NOTICE;
  return {notice ? Problem::Severity::notice : Problem::Severity::error, scope.root().nearest(path).location(), path,
          finding[2].get<std::string>()};
}

// Adds what the child has answered to `checked`; returns what is wrong with the answer itself.
std::vector<std::string> read_answer(const Json& answer, const Scope& scope, Checked& checked) {
  const Json findings = answer.value("findings", Json::array()), names = answer.value("names", Json::object());
  if (!findings.is_array() || !names.is_object()) return {"answered nonsense: the plugin is faulty, tell its author"};
  std::vector<std::string> faults;
  for (const Json& each : findings) {
    if (is_finding(each))
      checked.problems.push_back(problem_of(each, scope));
    else
      faults.push_back(fmt::format("has a finding about no key: {}", json_text(each)));
  }
  for (const auto& entry : names.items()) {
    if (entry.value().is_primitive() && !entry.value().is_discarded())
      checked.names.emplace(entry.key(), json_value(entry.value()));
    else
      faults.push_back(fmt::format("gives the name {} the value {}, wanted a number, a text, true, false or null",
                                   entry.key(), json_text(entry.value())));
  }
  if (const Json problem = answer.value("problem", Json()); !problem.is_null())
    faults.push_back(problem.is_string() ? problem.get<std::string>() : json_text(problem));
  return faults;
}

}  // namespace

std::shared_ptr<CheckLibrary> CheckLibrary::of(const Installed& installed, bool allow_insecure) {
  if (installed.candidate().manifest->check_library.empty()) return nullptr;
  return std::make_shared<CheckLibrary>(installed.candidate(), allow_insecure);
}

CheckLibrary::CheckLibrary(const plugin::Candidate& plugin, bool allow_insecure)
    : plugin_(plugin.manifest->name),
      file_(plugin.manifest_path.parent_path() / plugin.manifest->check_library),
      sha256_(plugin.manifest->check_sha256),
      trusted_(plugin.trusted || allow_insecure) {
  try {
    opened_.emplace(file_, refuse_file, trusted_);
    if (const auto why = trusted_ || opened_->insecure() ? opened_->insecure() : plugin.insecure)
      refusal_ = "is refused: " + *why;
  } catch (const Error& error) {
    refusal_ = fmt::format("is refused: {}", error.what());
  }
  start();
}

void CheckLibrary::start() {
  if (!refusal_.empty()) return;
  try {
    auto [ours, its] = process::make_sockets(SOCK_STREAM);
    const process::Descriptor nothing = process::null_device();
    child_ = process::Child(process::fork_here(setup_of(nothing), [&, &parents = ours, end = its.get()] {
      parents.close();
      serve_check(*opened_, sha256_, trusted_, end);
      return 0;
    }));
    socket_ = std::move(ours);
  } catch (const std::system_error& error) {
    refusal_ = fmt::format("cannot be run: {}", error.code().message());
  }
}

Checked CheckLibrary::ask(const Scope& scope) {
  Checked checked;
  const auto faulty = [&](const std::string& what) {
    checked.problems.push_back({Problem::Severity::error, scope.root().nearest(scope.block()).location(), scope.block(),
                                fmt::format("the check library of '{}' ({}) {}", plugin_, file_.string(), what)});
  };
  if (std::exchange(is_asked_, true)) child_.end(), start();  // a process answers once
  if (!refusal_.empty()) {
    faulty(refusal_);
    return checked;
  }
  Ended ended = Exchange(socket_.get(), input_of(scope)).run();
  const Json answer = try_parse_json<Json>(ended.output);
  if (answer.is_object()) {  // the process is ended where this object is
    for (const std::string& fault : read_answer(answer, scope, checked)) faulty(fault);
    return checked;
  }
  child_.kill_group();  // it may have closed its end and go on; one that is ending keeps its own exit status
  const process::Exit exit = child_.wait();
  if (ended.problem.empty()) ended.problem = exit == process::Exit() ? "answered nonsense" : sentence(exit);
  faulty(ended.problem + ": the plugin is faulty, tell its author");
  return checked;
}

}  // namespace hexad::config
