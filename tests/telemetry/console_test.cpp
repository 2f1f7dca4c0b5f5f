// What a person sees, on a terminal and in a pipe.
#include "core/telemetry/console.hpp"

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>

#include "tests/support/toy/toy.hpp"

using hexad::telemetry::Console;
using hexad::telemetry::Metrics;
using plugin_test::contains;

namespace {

const Metrics kTrain = {{"reward", 0.4123}, {"loss", 0.01}, {"grad_norm", 1.5}, {"mean_gen_tokens_per_sample", 3.25}};
const Metrics kTiming = {{"total_step_time", 2},     {"generation", 1},      {"policy_training", 0.5},
                         {"policy_training/x", 0.4}, {"prepare/total", 0.2}, {"tiny", 0.001}};

// What `write` puts on a console whose output is a file.
template <typename Write>
std::string piped(Write&& write) {
  const toy::TempDir dir;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((dir / "out").c_str(), "w"), &std::fclose);
  {
    Console console(file.get());
    write(console);
  }
  std::fflush(file.get());
  return plugin_test::read_text(dir / "out");
}

// The same on a terminal of `columns` columns.
template <typename Write>
std::string shown(int columns, Write&& write, const char* terminal = "xterm") {
  int master = -1, slave = -1;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  std::FILE* file = ::fdopen(slave, "w");
  REQUIRE(::setenv("TERM", terminal, 1) == 0);
  {
    Console console(file);
    write(console);
  }
  std::fclose(file);  // what was written comes in pieces, then the end
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = ::read(master, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(count));
  ::close(master);
  return text;
}

}  // namespace

TEST_CASE("in a pipe there are lines alone") {
  const std::string text = piped([](Console& console) {
    console.line("hello");
    console.progress("generation", 3, 10, "30 tokens");
    console.step(12, 200, kTrain, kTiming);
  });
  CHECK(text ==
        "hello\n"
        "step 12/200  reward 0.412  loss 0.0100  grad 1.500  length 3.2  time 2.00 s  (generation 50%, "
        "policy_training 25%, "
        "prepare 10%)\n");
}

TEST_CASE("a step without some metrics leaves them out") {
  CHECK(piped([](Console& console) { console.step(1, 2, {}, {}); }) == "step 1/2\n");
}

TEST_CASE("on a terminal the bar is redrawn in place, cut to its width, and cleared before a line") {
  const std::string text = shown(80, [](Console& console) {
    console.progress("generation", 0, 0);
    console.progress("generation", 5, 10, "30 tokens");
    console.progress("generation", 10, 10);
    console.line("done");
  });
  CHECK(text.starts_with(
      "\r\033[Kgeneration [##########..........] 5/10  30 tokens\r\033[Kgeneration [####################] 10/10"));
  CHECK(contains(text, "\r\033[Kdone\r\n"));
  const std::string narrow = shown(20, [](Console& console) { console.progress("generation", 5, 10, "30 tokens"); });
  CHECK(narrow.starts_with("\r\033[Kgeneration [####...\r\033[K"));
}

TEST_CASE("on a terminal a step has two lines, and a long line is broken between its fields") {
  Metrics train = kTrain;
  train["token_mult_prob_error"] = 1.0123;
  CHECK(shown(80, [&](Console& console) { console.step(12, 200, train, kTiming); }) ==
        "step 12/200  reward 0.412  loss 0.0100  grad 1.500  mismatch 1.0123  length 3.2\r\n"
        "  time 2.00 s  (generation 50%, policy_training 25%, prepare 10%)\r\n");
  CHECK(shown(40, [&](Console& console) { console.step(12, 200, train, kTiming); }) ==
        "step 12/200  reward 0.412  loss 0.0100\r\n"
        "  grad 1.500  mismatch 1.0123\r\n"
        "  length 3.2\r\n"
        "  time 2.00 s  (generation 50%, polic...\r\n");
  const std::string path = "/a/" + std::string(100, 'p');
  CHECK(shown(80, [&](Console& console) { console.line("saved in " + path + " now"); }) ==
        "saved in\r\n  " + path + "\r\n  now\r\n");
}

TEST_CASE("a dumb terminal gets no control characters") {
  const std::string text = shown(
      80,
      [](Console& console) {
        console.progress("generation", 5, 10);
        console.line("done");
      },
      "dumb");
  CHECK(text == "done\r\n");
}

TEST_CASE("control characters of a model's text are shown, not obeyed, and its lines are no lines of the console") {
  const auto write = [](Console& console) {
    console.line(
        "a\x1b[2Jb\rc\nd\xff\xc2\x9b"
        "e \u00e9");
  };
  CHECK(piped(write) == "a\\x1b[2Jb\\x0dc\n  d\\xff\\u009be \u00e9\n");
  CHECK(shown(80, write) == "a\\x1b[2Jb\\x0dc\r\n  d\\xff\\u009be \u00e9\r\n");
}
