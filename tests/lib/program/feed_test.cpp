// A program that is fed with lines: what it is given, how it may fail, and that nobody waits for it.
#include "lib/program/feed.hpp"

#include <sys/resource.h>

#include "tests/lib/process/sandbox.hpp"
#include "tests/support/no_threads.hpp"
#include "tests/support/said.hpp"

using namespace process_test;
using hexad::program::Feed;
using hexad::program::FeedSettings;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

FeedSettings shell(const std::string& script) {
  return {.who = "logger.mine", .name = "tracker", .command = {"sh", "-c", script}};
}

double seconds_of(const std::function<void()>& what) {
  const auto began = Clock::now();
  what();
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::string log_of(FeedSettings settings, const std::function<void(Feed&)>& use) {
  const test_support::Log log;
  {
    Feed feed(std::move(settings));
    use(feed);
  }
  return log.text();
}

// Until the process whose number is in the file has ended, and whoever waits for it has noticed.
void wait_for_end(const std::string& file) {
  REQUIRE(eventually([&] { return read_text(file).ends_with("\n"); }));
  REQUIRE(eventually([&] { return !alive(std::stoi(read_text(file))); }));
  std::this_thread::sleep_for(1s);
}

// A lower limit of this process, while it lives.
class Lowered {
 public:
  Lowered(__rlimit_resource what, rlim_t most) : what_(what) {
    REQUIRE(::getrlimit(what, &before_) == 0);
    const rlimit lower = {most, before_.rlim_max};
    REQUIRE(::setrlimit(what, &lower) == 0);
  }
  ~Lowered() { ::setrlimit(what_, &before_); }
  Lowered(const Lowered&) = delete;

 private:
  __rlimit_resource what_;
  rlimit before_;
};

rlim_t first_free_descriptor() {
  const Descriptor free(::dup(STDERR_FILENO));
  return static_cast<rlim_t>(free.get());
}

rlim_t bytes_of_ours() { return std::stoul(read_text("/proc/self/statm")) * static_cast<rlim_t>(::getpagesize()); }

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a fed program gets every line in order, ends by itself, and nothing is said of that") {
  const TempDir dir;
  const std::string log = log_of(shell("cat > " + dir / "got"), [](Feed& feed) {
    for (int i = 0; i < 1000; ++i) feed.put("line " + std::to_string(i) + std::string(500, '.'));
    feed.close("the last", kPatience);
  });
  std::string wanted;
  for (int i = 0; i < 1000; ++i) wanted += "line " + std::to_string(i) + std::string(500, '.') + "\n";
  CHECK(read_text(dir / "got") == wanted + "the last\n");
  CHECK(log == "");
}

TEST_CASE("what a fed program writes is logged, up to a bound") {
  const std::string log =
      log_of(shell("read -r a; echo \"one $a\"; seq 200 >&2"), [](Feed& feed) { feed.close("first", kPatience); });
  SAYS(log, "logger.mine: one first\n");
  SAYS(log, "logger.mine: 99\n");
  SAYS(log, "logger.mine: the next lines are left out\n");
  CHECK(log.find("mine: 100\n") == std::string::npos);
}

TEST_CASE("a fed program that ends too early is told of once, with its status and its last line") {
  const TempDir dir;
  const std::string script = "echo $$ > " + dir / "pid; read -r a; echo 'no module'; echo 'Error: nothing' >&2; exit 3";
  const std::string log = log_of(shell(script), [&](Feed& feed) {
    feed.put("one");
    wait_for_end(dir / "pid");
    for (int i = 0; i < 10; ++i) feed.put("more");
    feed.close("last", kPatience);
  });
  SAYS(log, "logger.mine: `sh -c " + script +
                "` ended with exit status 3, and the run goes on without it. The last "
                "line that it wrote: Error: nothing\n");
  SAYS(log, "logger.mine: 11 of 12 lines have not reached `sh -c ");
  CHECK(log.find("exit status 3", log.find("exit status 3") + 1) == std::string::npos);
}

TEST_CASE("kill -9 of a fed program, and one that is not there") {
  const TempDir dir;
  const std::string killed = log_of(shell("echo $$ > " + dir / "pid; cat >/dev/null"), [&](Feed& feed) {
    feed.put("one");
    REQUIRE(eventually([&] { return read_text(dir / "pid").ends_with("\n"); }));
    ::kill(std::stoi(read_text(dir / "pid")), SIGKILL);
    wait_for_end(dir / "pid");
    feed.close("last", kPatience);
  });
  SAYS(killed, "was killed by signal 9 (Killed), and the run goes on without it\n");
  SAYS(killed, "logger.mine: 1 of 2 lines have not reached");

  const std::string missing = log_of({.who = "logger.mine", .name = "tracker", .command = {"hexad-no-such-program"}},
                                     [](Feed& feed) { feed.close("last", kPatience); });
  SAYS(missing, "logger.mine: `hexad-no-such-program` ended with exit status 127");
  SAYS(missing, "The last line that it wrote: tracker: 3: hexad-no-such-program: not found\n");
}

TEST_CASE("a fed program that never reads holds nobody up, and ends at its deadline with all that it started") {
  const TempDir dir;
  double fed_s = 0;
  std::string log;
  FeedSettings settings = shell("sleep 1000 & echo $! > " + dir / "pid; sleep 1000");
  settings.most_bytes = 200'000;
  const double all_s = seconds_of([&] {
    log = log_of(settings, [&](Feed& feed) {
      fed_s = seconds_of([&] {
        for (int i = 0; i < 100; ++i) feed.put(std::string(10'000, 'x'));
      });
      REQUIRE(eventually([&] { return read_text(dir / "pid").ends_with("\n"); }));
      feed.close("last", 1s);
    });
  });
  CHECK(fed_s < 1);
  CHECK(all_s < 60);
  SAYS(log, "` has not ended 1 s after its last line and is killed\n");
  SAYS(log, " of 101 lines have not reached ");
  CHECK(eventually([&] { return !alive(std::stoi(read_text(dir / "pid"))); }));
}

TEST_CASE("a fed program that closes its input may go on, and is not fed any more") {
  const TempDir dir;
  const std::string log = log_of(
      shell("read -r a; exec <&-; echo > " + dir / "closed; sleep 1; echo done > " + dir / "end"), [&](Feed& feed) {
        feed.put("one");
        REQUIRE(eventually([&] { return fs::exists(dir / "closed"); }));
        feed.put("two");
        feed.close("last", kPatience);
      });
  CHECK(read_text(dir / "end") == "done\n");
  SAYS(log, "` ended with exit status 0\n");
  SAYS(log, "logger.mine: 2 of 3 lines have not reached `");
}

TEST_CASE("a feed that is not closed ends its program at once and says nothing of it") {
  std::string log;
  const double all_s = seconds_of([&] { log = log_of(shell("sleep 1000"), [](Feed&) {}); });
  CHECK(all_s < 60);
  CHECK(log == "");
}

TEST_CASE("a fed program is not given the variables that are withheld from it") {
  const TempDir dir;
  const Variable secret("HEXAD_TEST_SECRET", "s3cret-value"), plain("HEXAD_TEST_PLAIN", "plain-value");
  FeedSettings settings = shell("env > " + dir / "env");
  settings.withheld = {"HEXAD_TEST_SECRET"};
  log_of(settings, [](Feed& feed) { feed.close("last", kPatience); });
  SAYS(read_text(dir / "env"), "HEXAD_TEST_PLAIN=plain-value\n");
  CHECK(read_text(dir / "env").find("s3cret-value") == std::string::npos);
}

TEST_CASE("a feed that finds no descriptor or no thread says so once, and whoever feeds it goes on") {
  using Use = std::function<void()>;
  const auto log_under = [](const std::function<void(const Use&)>& limit) {
    const test_support::Log log;
    limit([] {
      Feed feed(shell("cat"));
      feed.put("one");
      feed.close("last", kPatience);
    });
    return log.text();
  };
  const std::string begin = "logger.mine: `sh -c cat` cannot be started: ", end = ", and the run goes on without it\n",
                    lost = "logger.mine: 2 of 2 lines have not reached `";
  for (rlim_t more = 0; more <= 10; more += 2) {  // the feed's own pipe, the program's, those of its tree
    CAPTURE(more);
    const std::string log = log_under([&](const Use& feed) {
      const Lowered few(RLIMIT_NOFILE, first_free_descriptor() + more);
      feed();
    });
    SAYS(log, begin + "Too many open files" + end);
    SAYS(log, lost);
  }
  const std::string log = log_under([](const Use& feed) {
    const test_support::NoThreads none;
    feed();
  });
  SAYS(log, begin + "Resource temporarily unavailable" + end);
  SAYS(log, lost);
}

TEST_CASE("a feed without memory for a line ends its program, and nobody else") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return test_report::skipped("a sanitizer wants more memory than there is here");
#else
  const TempDir dir;
  FeedSettings settings = shell("echo $$ > " + dir / "pid; cat > /dev/null");
  settings.most_bytes = size_t{1} << 30;
  const std::string log = log_of(settings, [&](Feed& feed) {
    const pid_t pid = pid_in(dir / "pid");
    std::string line(size_t{64} << 20, 'x');  // to which its end must be added
    const Lowered little(RLIMIT_AS, bytes_of_ours() + (rlim_t{32} << 20));
    feed.put(std::move(line));
    feed.close("last", kPatience);
    CHECK(eventually([&] { return !alive(pid); }));
  });
  SAYS(log, "` cannot be fed: std::bad_alloc, and the run goes on without it\n");
  SAYS(log, "logger.mine: 2 of 2 lines have not reached `");
#endif
}
