// Output that cannot be written, and what exceptions become: exit statuses and lines of the programs.
#include "app/program.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <iostream>
#include <new>

#include "lib/base/error.hpp"
#include "tests/support/report.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

template <typename Body>
int status_of(const Body& body) {
  return hexad::cli::run_program("test", body);
}

template <typename Exception>
int status_of_throwing(const Exception& exception) {
  return status_of([&]() -> int { throw exception; });
}

Ended under_shell(const std::string& script, const Arguments& arguments) {
  return Program({"bash", "-c", script, "bash", toy::hexad().string()}, arguments, "").wait();
}

}  // namespace

TEST_CASE("the exit status is that of the body, or of what it threw") {
  namespace fs = std::filesystem;
  using hexad::Error;
  using hexad::ErrorKind;
  CHECK(status_of([] { return 130; }) == 130);
  CHECK(status_of_throwing(Error(ErrorKind::plugin, "a plugin")) == 3);
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  CHECK(status_of_throwing(fs::filesystem_error("cannot copy file", "here", full)) == 2);
  CHECK(status_of_throwing(std::bad_alloc()) == 2);
  CHECK(status_of_throwing(std::length_error("vector::reserve")) == 2);
  CHECK(status_of_throwing(std::system_error(full, "a thread")) == 1);
  CHECK(status_of_throwing(std::runtime_error("of our own making")) == 1);
}

TEST_CASE("std::cout is as it was when a program has run") {
  std::streambuf* const before = std::cout.rdbuf();
  CHECK(status_of([] { return 0; }) == 0);
  CHECK(std::cout.rdbuf() == before);
  CHECK(std::cout.exceptions() == std::ios::goodbit);
}

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a command whose answer cannot be written says why, and does not exit with 0") {
  const TempDir dir;
  const std::string config = dir.write("toy.yaml", toy::config_text(dir.path())).string(),
                    model = (toy::source_dir() / "configs/quickstart_model").string(),
                    texts = dir.write("texts.jsonl", "{\"text\": \"ab\"}\n").string();
  dir.write("run/metrics.jsonl", "{\"step\": 1, \"train/loss\": 1.0}\n");
  const Arguments commands[] = {{"config", "show", config, "--json"},
                                {"config", "show", config},
                                {"config", "check", config},
                                {"plugin", "list"},
                                {"tokenize", model, "--input", texts},
                                {"report", (dir / "run").string(), "--json"},
                                {"report", (dir / "run").string()},
                                {"--help"},
                                {"--version"}};
  for (const Arguments& command : commands) {
    CAPTURE(command.front());
    const Ended well = toy::run(command);
    INFO(well.err);
    REQUIRE(well.code == 0);
    const Ended full = under_shell("exec \"$@\" > /dev/full", command);
    CHECK(full.code == 2);
    CHECK_MESSAGE(contains(full.err, "hexad: standard output: cannot be written: No space left on device; "), full.err);
    const Ended closed = under_shell("exec \"$@\" >&-", command);
    CHECK(closed.code == 2);
    CHECK_MESSAGE(contains(closed.err, "standard output: cannot be written: Bad file descriptor"), closed.err);
    // As every filter does: a reader that has had enough ends it, and nobody takes the status for success.
    const Ended unread = under_shell("trap '' PIPE; \"$@\" | true; exit ${PIPESTATUS[0]}", command);
    CHECK((unread.code == 2 || unread.code == 0));  // it may have written before the reader was gone
  }
}

TEST_CASE("a file that finds no room is told with how to mend it") {
  const TempDir dir;
  const SmallDisk disk(dir / "disk", 64 << 10);
  if (!disk) return test_report::skipped("a mount of its own is not allowed");
  dir.write("run/metrics.jsonl", "{\"step\": 1, \"train/loss\": 1.0}\n");
  disk.fill();
  const std::string page = dir / "disk/page.html";
  const Ended ended = toy::run({"report", (dir / "run").string(), "--out", page});
  CHECK(ended.code == 2);
  CHECK(ended.err ==
        "hexad: report: cannot write " + page + ": No space left on device. Free space there, or name another place\n");
}

TEST_CASE("no name ends in an internal error") {
  const TempDir dir;
  const std::string longest(5000, 'a'), long_name = (dir / std::string(300, 'b')).string(),
                                        config = dir.write("toy.yaml", toy::config_text(dir.path())).string(),
                                        model = (toy::source_dir() / "configs/quickstart_model").string();
  for (const std::string& name : {longest, long_name, config + "/below"}) {
    const Arguments commands[] = {{"report", name},
                                  {"convert", name, (dir / "out").string()},
                                  {"convert", model, name},
                                  {"tokenize", name, "--input", config},
                                  {"tokenize", model, "--input", name},
                                  {"config", "check", name},
                                  {"config", "show", name},
                                  {"train", name},
                                  {"train", config, "policy.model_name=" + name},
                                  {"train", config, "logger.log_dir=" + name},
                                  {"train", config, "checkpointing.checkpoint_dir=" + name},
                                  {"train", config, "data.train.data_path=" + name},
                                  {"plugin", "info", name},
                                  {"plugin", "new", "loss_c", "mine", "--into", name}};
    for (const Arguments& command : commands) {
      CAPTURE(command.front());
      CAPTURE(name.substr(0, 20));
      const Ended ended = toy::run(command);
      CHECK_MESSAGE(!contains(ended.out + ended.err, "internal error"), ended.err);
      CHECK(ended.code >= 0);
    }
  }
}

TEST_SUITE_END();
