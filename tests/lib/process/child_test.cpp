// Children to their ends: deadlines, groups, whole trees, and how an end is called.
#include <sys/wait.h>

#include "tests/lib/process/support.hpp"

#include "lib/process/tree.hpp"

using namespace process_test;

namespace {

Child shell(const std::string& script) { return Child(start({.arguments = {"/bin/sh", "-c", script}})); }

// A program that leaves a process in a session of its own, writes that one's number to a file, and ends with `last`.
std::vector<std::string> leaving(const std::string& file, const std::string& last) {
  return {"sh", "-c", "setsid sh -c 'echo $$ > " + file + "; exec sleep 1000' & sleep 0.1; " + last};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the end of a child in words") {
  CHECK(words({.code = 3}) == "exit status 3");
  CHECK(words({.signal = SIGKILL}) == "killed by signal 9 (Killed)");
  CHECK(sentence({.code = 0}) == "ended with exit status 0");
  CHECK(sentence({.signal = SIGSEGV}) == "was killed by signal 11 (Segmentation fault)");
  CHECK(shell("exit 3").wait() == Exit{.code = 3});
  CHECK(shell("kill -TERM $$").wait() == Exit{.signal = SIGTERM});
}

TEST_CASE("a wait ends at its deadline, and with the child") {
  Child slow = shell("exec sleep 1000");
  const auto began = Clock::now();
  CHECK(!slow.wait_until(began + std::chrono::milliseconds(50)));
  CHECK(Clock::now() - began >= std::chrono::milliseconds(50));
  CHECK(!slow.wait_until({}));
  slow.kill_group();
  CHECK(slow.wait_until(Clock::now() + kPatience) == Exit{.signal = SIGKILL});
  CHECK(slow.wait() == Exit{.signal = SIGKILL});
  CHECK(Clock::now() - began < kPatience);
}

TEST_CASE("a child that is looked at is not waited for") {
  Child child = shell("exit 4");
  CHECK(eventually([&] { return child.peek().has_value(); }));
  CHECK(child.peek() == Exit{.code = 4});
  CHECK(::kill(child.pid(), 0) == 0);
  CHECK(child.wait() == Exit{.code = 4});
  CHECK(::kill(child.pid(), 0) == -1);
  CHECK(child.peek() == Exit{.code = 4});
}

TEST_CASE("a child that somebody else has reaped counts as one that ended well, at once") {
  Child child = shell("exit 4");
  ::waitpid(child.pid(), nullptr, 0);
  CHECK(child.peek() == Exit{});
  const auto began = Clock::now();
  CHECK(child.wait_until(began + kPatience) == Exit{});
  CHECK(Clock::now() - began < kPatience);
}

TEST_CASE("what a child leaves in its group ends when the child is waited for, and when it is destroyed") {
  const TempDir dir;
  const std::string left = "sleep 1000 & echo $! > ";
  Child ends = shell(left + dir / "first" + "; exit 5");
  CHECK(ends.wait() == Exit{.code = 5});
  CHECK(eventually([&] { return !alive(pid_in(dir / "first")); }));
  {
    const Child stays = shell(left + dir / "second" + "; wait");
    CHECK(alive(pid_in(dir / "second")));
    CHECK(alive(stays.pid()));
  }
  CHECK(eventually([&] { return !alive(pid_in(dir / "second")); }));
}

TEST_CASE("a child has one owner") {
  Child first = shell("exec sleep 1000");
  const pid_t pid = first.pid();
  Child second = std::move(first);
  CHECK(!first);  // NOLINT(bugprone-use-after-move): moved from, it owns nothing
  CHECK(second.pid() == pid);
  CHECK(alive(pid));
  second = shell("exit 6");
  CHECK(!alive(pid));
  CHECK(second.wait() == Exit{.code = 6});
}

TEST_CASE("a tree ends with what left its group and session") {
  const TempDir dir;
  const Descriptor nothing = null_device();
  const auto tree_of = [&](const std::string& last) {
    return Tree("test", leaving(dir / "pid", last), nothing.get(), nothing.get(), nothing.get());
  };
  pid_t left = 0;
  {
    Tree tree = tree_of("exit 3");
    CHECK(eventually([&] { return tree.ended().has_value(); }));
    CHECK(tree.ended() == Exit{.code = 3});
    left = pid_in(dir / "pid");
    CHECK(alive(left));
  }
  CHECK(!alive(left));
  std::filesystem::remove(dir / "pid");
  {
    Tree tree = tree_of("kill -TERM $$");
    CHECK(eventually([&] { return tree.ended().has_value(); }));
    CHECK(tree.ended() == Exit{.signal = SIGTERM});
    left = pid_in(dir / "pid");
  }
  CHECK(!alive(left));
}

TEST_CASE("a tree does not outlive a kill -9 of the process that has it") {
  const TempDir dir;
  Child owner(fork_here({}, [&] {
    const Descriptor nothing = null_device();
    const Tree tree("test", leaving(dir / "pid", "exec sleep 1000"), nothing.get(), nothing.get(), nothing.get());
    while (true) ::pause();
    return 0;
  }));
  const pid_t left = pid_in(dir / "pid");
  CHECK(alive(left));
  ::kill(owner.pid(), SIGKILL);
  CHECK(eventually([&] { return !alive(left); }));
}

TEST_CASE("a tree without a program ends with 127, and its shell says so by its name") {
  auto [error, error_end] = make_pipe();
  const Descriptor nothing = null_device();
  {
    Tree tree("the-name", {"no-such-program"}, nothing.get(), nothing.get(), error_end.get());
    CHECK(eventually([&] { return tree.ended().has_value(); }));
    CHECK(tree.ended() == Exit{.code = 127});
  }
  error_end.close();
  const std::string text = read_all(error);
  CHECK_MESSAGE((text.starts_with("the-name: ") && text.find("no-such-program: not found") != text.npos), text);
}

TEST_SUITE_END();
