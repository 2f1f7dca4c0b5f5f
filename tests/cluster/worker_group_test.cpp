// Real worker processes that host plugins in C: what a rank that dies, hangs or fails does to the call.
#include "core/cluster/process/worker_group.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/toy/program.hpp"
#include "tests/support/toy/workers.hpp"

using namespace hexad;
using cluster::Message;
using cluster::WorkerGroup;
using plugin_test::contains;
using plugin_test::error_of;
using toy::all_gone;
namespace fs = std::filesystem;
namespace protocol = cluster::protocol;

namespace {

// Deadlines: one that nothing meets, one that is waited for (starting the workers fits into it), and when a test that
// was to be over before it is not.
constexpr double kLongS = 120, kShortS = 8, kSoonS = 60;

// Two ranks; `fault` is rank 1's, `first_fault` rank 0's.
struct Two {
  explicit Two(const std::string& fault = "", double call_timeout_s = kLongS, double heartbeat_timeout_s = kLongS,
               const std::string& first_fault = "")
      : group(&spawner, options(dir.path(), call_timeout_s, heartbeat_timeout_s)) {
    toy::start_all(group, fault, first_fault);
    group.set_step(5);
  }
  static cluster::WorkerGroupOptions options(const fs::path& log_dir, double call_timeout_s,
                                             double heartbeat_timeout_s) {
    cluster::WorkerGroupOptions options;
    options.world_size = 2;
    options.program = toy::hexad();
    options.log_dir = log_dir;
    options.call_timeout_s = call_timeout_s;
    options.heartbeat_timeout_s = heartbeat_timeout_s;
    return options;
  }
  // What the command ends with.
  std::string refit_error() {
    return error_of([&] { group.call(group.all(), refit); });
  }
  std::vector<pid_t> pids() const { return {group.pid(0), group.pid(1)}; }

  const protocol::Refit refit{.version = 1};
  toy::TempDir dir;
  cluster::Spawner spawner;
  WorkerGroup group;
};

// A command as no struct of the protocol has it.
Message raw(const std::string& command, const cluster::Json& header = cluster::Json::object()) {
  Message message;
  message.command = command;
  message.header = header;
  return message;
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("two workers start, answer in rank order, and stop() leaves no process") {
  Two two;
  CHECK(two.group.size() == 2);
  const auto pids = two.pids();
  CHECK(toy::alive(pids[0]));
  CHECK(two.group.call(two.group.all(), two.refit).size() == 2);
  two.group.stop();
  CHECK(all_gone(pids));
  CHECK(two.refit_error() == "cannot call 'refit': the workers have ended");
}

TEST_CASE("a rank that dies in a call ends it with rank, host, pid, signal and last call") {
  Two two("refit@5:kill");
  const auto pids = two.pids();
  const Stopwatch watch;
  const std::string error = two.refit_error();
  CHECK(watch.seconds() < kSoonS);
  const std::string host = two.group.host(1);
  CHECK(host != "localhost");
  CHECK_MESSAGE(error.starts_with(fmt::format(
                    "rank 1 on {} (pid {}) ended: killed by signal 9 (Killed); last call 'refit', ", host, pids[1])),
                error);
  CHECK(contains(error, "worker-1.log"));
  two.group.stop();
  CHECK(all_gone(pids));
}

TEST_CASE("a rank that exits by itself is reported with its status") {
  Two two("refit@0:exit");
  CHECK(contains(two.refit_error(), "ended: exit status 7; last call 'refit'"));
}

TEST_CASE("a rank that was stopped is reported when its heartbeats have been missing for long enough") {
  Two two("refit@5:stop", kLongS, /*heartbeat_timeout_s=*/kShortS);
  const auto pids = two.pids();
  const Stopwatch watch;
  const std::string error = two.refit_error();
  CHECK(watch.seconds() < kSoonS);
  CHECK_MESSAGE(
      contains(error, fmt::format("rank 1 on {} (pid {}) gave no sign of life for ", two.group.host(1), pids[1])),
      error);
  CHECK(contains(error, "last call 'refit'"));
  two.group.stop();
  CHECK(all_gone(pids));
}

TEST_CASE("a rank that hangs with a beating heart is reported when the call's deadline is over") {
  Two two("refit@5:hang", /*call_timeout_s=*/kShortS);
  const auto pids = two.pids();
  const Stopwatch watch;
  const std::string error = two.refit_error();
  CHECK(watch.seconds() < kSoonS);
  CHECK_MESSAGE(contains(error, fmt::format("rank 1 on {} (pid {}) did not answer within 8 s (last sign of life ",
                                            two.group.host(1), pids[1])),
                error);
  CHECK(contains(error, "If the call is just slow, raise cluster.worker_timeout_s; last call 'refit'"));
  two.group.stop();
  CHECK(all_gone(pids));
}

TEST_CASE("what others finish meanwhile is no progress of a rank that hangs") {
  toy::TempDir dir;
  cluster::Spawner spawner;
  WorkerGroup group(&spawner, Two::options(dir.path(), /*call_timeout_s=*/kShortS, kLongS));
  const bool runtime = fs::exists(toy::hexad().parent_path().parent_path() / "lib/libhexad_runtime.so");
  const int port = test_support::free_port();
  group.call<protocol::Start>(group.all(), [&](int rank) {
    auto start = rank == 0 ? toy::slow_start_command(/*poll_ms=*/200) : toy::start_command("refit@5:hang");
    if (runtime) toy::join_world(start, 2, port);
    return start;
  });
  group.set_step(5);
  constexpr int64_t kRequests = 600;  // two minutes
  data::Batch prompts = data::Batch::of_lengths(std::vector<int64_t>(kRequests, 1));
  const auto all = [](int64_t value) { return data::Tensor::of(std::vector<int64_t>(kRequests, value)); };
  std::vector<int64_t> ids(kRequests);
  std::iota(ids.begin(), ids.end(), int64_t{1} << 32);
  prompts.set("tokens", data::Tensor::of(std::vector<int32_t>(kRequests, 1)), data::Axis::token);
  prompts.set("id", data::Tensor::of(ids), data::Axis::sample);
  for (const char* name : {"group", "seed", "max_new_tokens"}) prompts.set(name, all(1), data::Axis::sample);
  int finished = 0;
  group.on_completions([&](int rank, const protocol::Completions&) { finished += rank == 0; });
  group.call({0, 1}, protocol::Submit{{.prompts = prompts, .sampling = {}}});
  const Stopwatch watch;
  const std::string error = error_of([&] { group.call({1, 1}, protocol::Refit{.version = 1}); });
  CHECK(watch.seconds() < kSoonS);
  CHECK(finished > 3);
  CHECK_MESSAGE(contains(error, fmt::format("rank 1 on {} (pid ", group.host(1))), error);
  CHECK_MESSAGE(contains(error, "did not answer within 8 s"), error);
}

TEST_CASE("a post waits for nothing, its answer is nobody's, and its error ends the next call") {
  toy::InProcess workers;
  int posts = 0;
  workers.group.meanwhile([&] {  // in the middle of the call, whose answer comes before the posts'
    if (posts++ < 3)
      workers.group.post<protocol::CancelRequests>({0, 1}, [](int) { return protocol::CancelRequests{}; });
    return true;
  });
  for (int i = 1; i <= 3; ++i) {
    CHECK(workers.group.call({0, 1}, protocol::Refit{.version = i})[0].seconds >= 0);
  }
  CHECK(posts >= 3);
  workers.group.meanwhile(nullptr);
  workers.group.post_raw({0, 1}, [](int) { return raw("no_such_command"); });
  CHECK(contains(error_of([&] { workers.group.wait_until([] { return false; }, kLongS); }), "no_such_command"));
}

TEST_CASE("a rank that dies between calls is reported by the next one") {
  Two two;
  const pid_t victim = two.group.pid(1);
  ::kill(victim, SIGKILL);
  REQUIRE(toy::eventually([&] { return !toy::alive(victim); }));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(300));  // its connection closes; the word is the same before that
  const std::string error = two.refit_error();
  CHECK_MESSAGE(contains(error, "rank 1 on "), error);
  CHECK_MESSAGE(contains(error, "ended: killed by signal 9 (Killed)"), error);
}

TEST_CASE("a controller that was busy for longer than the deadlines blames nobody") {
  Two two("", /*call_timeout_s=*/kShortS, /*heartbeat_timeout_s=*/kShortS);
  std::this_thread::sleep_for(std::chrono::duration<double>(kShortS + 2));
  CHECK(two.refit_error() == "(no error)");
}

TEST_CASE("a plugin's error comes back as what it was, with the rank") {
  Two two("refit@5:error");
  const std::string error = two.refit_error();
  CHECK_MESSAGE(error.starts_with(fmt::format("rank 1 on {}: backend 'toy_backend' 1.2.0 (", two.group.host(1))),
                error);
  CHECK_MESSAGE(contains(error, "at step 5: INTERNAL: the toy was told to fail"), error);
  CHECK(contains(two.refit_error(), "the workers have ended"));
}

TEST_CASE("a worker that cannot start its plugins says why") {
  toy::TempDir dir;
  cluster::Spawner spawner;
  auto options = Two::options(dir.path(), kLongS, kLongS);
  options.world_size = 1;
  WorkerGroup group(&spawner, options);
  auto start = toy::start_command();
  start.roles.backend = "toy_bakend";
  try {
    group.call(group.all(), start);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::plugin);
    CHECK(error.exit_code() == 3);
    CHECK_MESSAGE(contains(error.what(), "toy_backend"), std::string(error.what()));
  }
}

TEST_CASE("a program that is no worker is reported with its exit") {
  toy::TempDir dir;
  cluster::Spawner spawner;
  auto options = Two::options(dir.path(), kLongS, kLongS);
  options.program = "/bin/false";
  const std::string error = error_of([&] { WorkerGroup group(&spawner, options); });
  CHECK_MESSAGE(contains(error, "ended: exit status 1; last call 'start'"), error);
}

TEST_CASE("a worker of another build is refused, and no command reaches it") {
  const auto refused = [](const std::optional<int64_t>& version) {
    const toy::TempDir dir;
    cluster::Spawner spawner;
    auto options = Two::options(dir.path(), kLongS, kLongS);
    options.launch = cluster::Launch{"torchrun", 0, 2, 0, 2, "a-job"};
    options.meeting_dir = dir.path();
    std::string command;
    std::thread other([&] {  // rank 1, of the other build
      auto mine = *options.launch;
      mine.rank = mine.local_rank = 1;
      const cluster::Bootstrap bootstrap = cluster::meet(mine, dir.path(), kLongS);
      cluster::Socket socket = cluster::Socket::connect(bootstrap.endpoint, "1", bootstrap.server_key);
      socket.send(protocol::to_message(protocol::Hello{.version = version, .host = "node-2", .pid = 4711}));
      if (const auto received = socket.receive(60'000)) command = received->message.command;
    });
    std::string error = error_of([&] { WorkerGroup group(&spawner, options); });
    other.join();
    CHECK(command == "shutdown");
    return error;
  };
  const std::string wanted = fmt::format(
      " of the protocol between controller and workers, wanted version {}: it runs another build of hexad. Install the "
      "same build on every host, and start it by the same path",
      protocol::kVersion);
  CHECK(refused(protocol::kVersion + 1) ==
        fmt::format("rank 1 on node-2 (pid 4711) speaks version {}", protocol::kVersion + 1) + wanted);
  CHECK(refused(std::nullopt) == "rank 1 on node-2 (pid 4711) speaks no version" + wanted);
}

TEST_CASE("ranks meet at the address by which another host has reached the first process") {
  const toy::TempDir dir;
  cluster::Spawner spawner;
  auto options = Two::options(dir.path(), kLongS, kLongS);
  options.launch = cluster::Launch{"torchrun", 0, 2, 0, 2, "a-job"};
  options.meeting_dir = dir.path();
  std::thread other([&] {
    auto mine = *options.launch;
    mine.rank = mine.local_rank = 1;
    const cluster::Bootstrap bootstrap = cluster::meet(mine, dir.path(), kLongS);
    CHECK(bootstrap.controller == "127.0.0.1");
    cluster::Socket socket = cluster::Socket::connect(bootstrap.endpoint, "1", bootstrap.server_key);
    socket.send(protocol::to_message(
        protocol::Hello{.version = protocol::kVersion, .host = "node-2", .pid = 4711, .reached = "10.1.2.3"}));
    for (int i = 0; i < 5 && !socket.receive(60'000);) ++i;  // until it is told to end
  });
  {
    const WorkerGroup group(&spawner, options);
    CHECK(group.address() == "10.1.2.3");
  }
  other.join();
  CHECK(Two().group.address() == "127.0.0.1");
}

TEST_CASE("in-process mode runs the same commands on a thread") {
  cluster::WorkerGroupOptions options;
  options.call_timeout_s = kLongS;
  WorkerGroup group(nullptr, options);
  const auto started = group.call(group.all(), toy::start_command("refit@2:error")).at(0);
  CHECK(started.backend->name == "toy_backend");
  CHECK(started.generator->max_sequences == 64);
  CHECK(started.loss->inputs == std::vector<std::string>{"prev_logprobs", "advantages", "token_mask"});
  CHECK(started.device == "cpu");
  const auto refit_error = [&] { return error_of([&] { group.call(group.all(), protocol::Refit{.version = 1}); }); };
  group.set_step(2);
  CHECK(contains(refit_error(), "backend 'toy_backend'"));
  group.set_step(3);
  CHECK(refit_error() == "(no error)");  // one rank alone goes on
  const auto answer = [&](const Message& message) { group.call_raw(group.all(), [&](int) { return message; }); };
  CHECK(contains(error_of([&] { answer(raw("nonsense")); }), "unknown command 'nonsense'"));
  CHECK(error_of([&] { answer(raw("refit", {{"version", "new"}})); }) ==
        "command 'refit': field version: got \"new\", wanted a whole number of 64 bits");
  group.stop();
}

TEST_CASE("a rank that lost its peer leaves the word to the peer's end, and is quoted") {
  Two two("refit@5:late_kill", kLongS, kLongS, /*first_fault=*/"refit@5:lost");
  const std::string error = two.refit_error();
  CHECK_MESSAGE(error.starts_with(fmt::format("rank 1 on {} (pid ", two.group.host(1))), error);
  CHECK_MESSAGE(contains(error, "ended: killed by signal 9 (Killed); last call 'refit'"), error);
  CHECK_MESSAGE(contains(error, "\n    rank 0: backend 'toy_backend' 1.2.0 ("), error);
  CHECK_MESSAGE(contains(error, "UNAVAILABLE: a peer is missing"), error);
}

TEST_CASE("a rank that lost its peer is not waited with for long when the peer hangs") {
  Two two("refit@5:hang", kLongS, kLongS, /*first_fault=*/"refit@5:lost");
  const auto pids = two.pids();
  const Stopwatch watch;
  const std::string error = two.refit_error();
  CHECK(watch.seconds() < kSoonS);
  CHECK_MESSAGE(error.starts_with(fmt::format("rank 0 on {}: ", two.group.host(0))), error);
  CHECK_MESSAGE(contains(error, "UNAVAILABLE: a peer is missing"), error);
  CHECK_MESSAGE(contains(error, "\n    rank 1: did not answer; last sign of life "), error);
  two.group.stop();
  CHECK(all_gone(pids));
}

TEST_CASE("a rank that lost its peer names the peer that shows no life: a worker's failure, not a plugin's") {
  Two two("refit@5:stop", kLongS, kLongS, /*first_fault=*/"refit@5:late_lost");
  const Stopwatch watch;
  try {
    two.group.call(two.group.all(), two.refit);
    FAIL("no error");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(error.kind() == ErrorKind::worker);
    CHECK_MESSAGE(text.starts_with(fmt::format("rank 1 on {} (pid {}) gave no sign of life for ", two.group.host(1),
                                               two.group.pid(1))),
                  text);
    CHECK_MESSAGE(contains(text, "\n    rank 0: backend 'toy_backend' 1.2.0 ("), text);
    CHECK_MESSAGE(contains(text, "UNAVAILABLE: a peer is missing"), text);
  }
  CHECK(watch.seconds() < kSoonS);
}

TEST_CASE("a rank's own failure comes before what its peers missed") {
  Two two("refit@5:error", kLongS, kLongS, /*first_fault=*/"refit@5:lost");
  const std::string error = two.refit_error();
  CHECK_MESSAGE(error.starts_with(fmt::format("rank 1 on {}: ", two.group.host(1))), error);
  CHECK_MESSAGE(contains(error, "the toy was told to fail"), error);
}

TEST_SUITE_END();
