// What a person sees, on a terminal and in a pipe.
#include "app/console/console.hpp"

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>

#include <spdlog/spdlog.h>

#include "app/console/log.hpp"
#include "tests/support/no_threads.hpp"
#include "tests/support/toy/toy.hpp"

using hexad::cluster::protocol::Progress;
using hexad::console::Options;
using hexad::console::RunConsole;
using hexad::telemetry::Metrics;
using plugin_test::contains;

namespace {

const Metrics kTrain = {{"reward", 0.4123}, {"loss", 0.01}, {"grad_norm", 1.5}, {"mean_gen_tokens_per_sample", 3.25}};
const Metrics kTiming = {{"total_step_time", 2},     {"generation", 1},      {"policy_training", 0.5},
                         {"policy_training/x", 0.4}, {"prepare/total", 0.2}, {"tiny", 0.001}};
const Metrics kRates = {{"tokens_per_sec", 1339.6}};

// A clock that the test sets.
double now = 0;

Options options_of(std::FILE* out) {
  now = 0;
  return {.out = out, .clock = [] { return now; }, .redraws = std::chrono::milliseconds(0), .waits = false};
}

// What `write` puts on a console whose output is a file.
template <typename Write>
std::string piped(Write&& write, bool waits = false) {
  const toy::TempDir dir;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen((dir / "out").c_str(), "w"), &std::fclose);
  {
    Options options = options_of(file.get());
    options.waits = waits;
    RunConsole console(options);
    write(console);
  }
  std::fflush(file.get());
  return plugin_test::read_text(dir / "out");
}

void set(const char* name, const char* value) { REQUIRE((value ? ::setenv(name, value, 1) : ::unsetenv(name)) == 0); }

winsize size_of(int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  return size;
}

// A terminal of so many columns.
class Pty {
 public:
  explicit Pty(int columns) {
    const winsize size = size_of(columns);
    REQUIRE(::openpty(&master_, &slave_, nullptr, nullptr, &size) == 0);
    file_ = ::fdopen(slave_, "w");
  }
  ~Pty() { ::close(master_); }
  Pty(const Pty&) = delete;

  std::FILE* file() const { return file_; }
  int descriptor() const { return slave_; }
  // All that was written; nothing is written after that.
  std::string text() {
    std::fclose(file_);  // what was written comes in pieces, then the end
    std::string text;
    char piece[4096];
    for (ssize_t count; (count = ::read(master_, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<size_t>(count));
    return text;
  }

 private:
  int master_ = -1, slave_ = -1;
  std::FILE* file_ = nullptr;
};

// What `write` puts on a console on a terminal of `columns` columns, without colours.
template <typename Write>
std::string shown(int columns, Write&& write, const char* terminal = "xterm", const char* no_colour = "1") {
  Pty pty(columns);
  set("TERM", terminal);
  set("NO_COLOR", no_colour);
  {
    RunConsole console(options_of(pty.file()));
    write(console);
  }
  set("NO_COLOR", nullptr);
  return pty.text();
}

void step(RunConsole& console, int64_t number, int64_t last, const Metrics& train = kTrain,
          const Metrics& timing = kTiming) {
  console.begin(number, last);
  now += 2;
  console.step(number, train, timing, kRates);
}

}  // namespace

TEST_CASE("in a pipe there are lines alone") {
  const std::string text = piped([](RunConsole& console) {
    console.line("hello");
    console.phase("generation");
    console.progress(0, {"generation", 3, 10, 30});
    step(console, 12, 200);
  });
  CHECK(text ==
        "hello\n"
        "step 12/200  reward 0.412  loss 0.0100  grad 1.500  length 3.2  time 2.00 s  1,340 tok/s  6 min left  "
        "(generation 50%, policy_training 25%, prepare 10%)\n");
}

TEST_CASE("a step without some metrics leaves them out, and the last one has nothing left") {
  CHECK(piped([](RunConsole& console) {
          console.begin(2, 2);
          console.step(2, {}, {}, {});
        }) == "step 2/2\n");
}

TEST_CASE("lines wait for the start of a run, and are told where it does not come") {
  const std::string text = piped(
      [](RunConsole& console) {
        console.line("a notice");
        console.line("another");
      },
      /*waits=*/true);
  CHECK(text == "a notice\nanother\n");
}

TEST_CASE("on a terminal the bar is redrawn in place, cut to its width, and cleared before a line") {
  const auto write = [](RunConsole& console) {
    console.progress(0, {"generation", 5, 10, 0});
    now = 1;
    console.progress(0, {"generation", 10, 10, 300});
    console.line("done");
  };
  CHECK(shown(80, write) ==
        "generation [###############...............] 5/10"
        "\r\033[Jgeneration [##############################] 10/10  300 tok/s"
        "\r\033[Jdone\r\n");
  CHECK(shown(36, write) ==
        "generation [########........] 5/10"
        "\r\033[Jgeneration [###############] 10/10"
        "\r\033[Jdone\r\n");
}

TEST_CASE("the bar counts what all ranks tell, and begins anew with them") {
  const std::string text = shown(80, [](RunConsole& console) {
    console.phase("policy_training");
    console.progress(0, {"policy_training", 4, 8, 0});
    console.progress(1, {"policy_training", 2, 8, 0});
    console.progress(1, {"policy_training", 1, 8, 0});
  });
  CHECK(contains(text, "training [###########...................] 6/16"));
  CHECK(contains(text, "training [###...........................] 1/8\r\033[J"));
}

TEST_CASE("a bar that a terminal has broken since is cleared whole") {
  Pty pty(80);
  const winsize narrow = size_of(20);
  set("TERM", "xterm");
  set("NO_COLOR", "1");
  {
    RunConsole console(options_of(pty.file()));
    console.progress(0, {"generation", 5, 10, 0});  // 48 columns
    REQUIRE(::ioctl(pty.descriptor(), TIOCSWINSZ, &narrow) == 0);
    console.line("done");
  }
  set("NO_COLOR", nullptr);
  CHECK(pty.text().ends_with("\r\033[2A\033[Jdone\r\n"));
}

TEST_CASE("on a terminal a step has one line where it fits, else two, and fields that do not fit are broken off") {
  Metrics train = kTrain;
  train["token_mult_prob_error"] = 1.0123;
  const auto write = [&](RunConsole& console) { step(console, 12, 200, train); };
  const std::string metrics = "step 12/200  reward 0.412  loss 0.0100  grad 1.500  mismatch 1.0123  length 3.2",
                    time = "  time 2.00 s  1,340 tok/s  6 min left  (generation 50%, policy_training 25%, prepare 10%)";
  CHECK(shown(200, write) == metrics + time + "\r\n");
  CHECK(shown(100, write) == metrics + "\r\n" + time + "\r\n");
  CHECK(shown(40, write) ==
        "step 12/200  reward 0.412  loss 0.0100\r\n"
        "  grad 1.500  mismatch 1.0123\r\n"
        "  length 3.2\r\n"
        "  time 2.00 s  1,340 tok/s  6 min left\r\n");
  const std::string path = "/a/" + std::string(100, 'p');
  CHECK(shown(80, [&](RunConsole& console) { console.line("saved in " + path + " now"); }) ==
        "saved in\r\n  " + path + "\r\n  now\r\n");
  CHECK(shown(1, [](RunConsole& console) {  // and a column is enough for all of it
          console.line("    saved now");
          console.progress(0, {"generation", 5, 10, 0});
          step(console, 1, 2, {}, {});
        }) == "    saved\r\n  now\r\nstep\r\n  1/2\r\n.\r\n");
}

TEST_CASE("colours are a terminal's that was not asked for none") {
  const auto write = [](RunConsole& console) {
    console.line("note: look");
    step(console, 1, 1, {}, {});
  };
  const std::string coloured = "\033[33mnote:\033[0m look\r\n\033[1mstep 1/1\033[0m\033[2m  1,340 tok/s\033[0m\r\n",
                    plain = "note: look\r\nstep 1/1  1,340 tok/s\r\n";
  CHECK(shown(80, write, "xterm", nullptr) == coloured);
  CHECK(shown(80, write, "xterm", "") == coloured);  // as no-color.org has it
  CHECK(shown(80, write, "xterm", "1") == plain);
  CHECK(shown(80, write, "dumb", nullptr) == plain);
}

TEST_CASE("validation says what has changed since the one before, of the same name") {
  const std::string text = piped([](RunConsole& console) {
    console.validated(0, "validation", {{"accuracy", 0.115}, {"avg_length", 3}});
    console.validated(20, "validation", {{"accuracy", 0.785}, {"pass_k", 0.9}});
    console.validated(40, "validation", {{"accuracy", 0.785}, {"pass_k", 0.85}, {"num_invalid_samples", 2}});
    console.validated(40, "validation-default", {{"loss", 0.25}});
    console.validated(40, "validation", {{"avg_length", 3}});
  });
  CHECK(text ==
        "validation before step 1, the model as it was:  accuracy 0.115\n"
        "validation after step 20:  accuracy 0.785 (+0.67)  pass_k 0.9\n"
        "validation after step 40:  accuracy 0.785 (+0)  pass_k 0.85 (-0.05)  "
        "(2 samples could not be scored and count nowhere)\n"
        "validation-default after step 40:  loss 0.25\n");
}

TEST_CASE("at the end a console knows what has changed") {
  piped([](RunConsole& console) {
    CHECK(console.change() == "");
    console.validated(0, "validation", {{"accuracy", 0.115}});
    step(console, 1, 2, {{"reward", 0.125}});
    CHECK(console.change() == "accuracy 0.115 before step 1  1 step in 2 s");
    console.validated(2, "validation", {{"accuracy", 0.785}});
    step(console, 2, 2, {{"reward", 0.75}});
    now = 130;
    CHECK(console.change() == "accuracy 0.115 before, 0.785 after  reward 0.125 to 0.75  2 steps in 2 min");
  });
  piped([](RunConsole& console) {
    console.validated(0, "validation", {{"val_loss", 2.5}});
    step(console, 1, 1, {});
    console.validated(1, "validation", {{"val_loss", 1.5}});
    CHECK(console.change() == "validation loss 2.5 before, 1.5 after  1 step in 2 s");
  });
}

TEST_CASE("the end calls nothing before or after that was not measured there") {
  piped([](RunConsole& console) {  // no validation before step 1, as grpo.val_at_start: false has it
    console.validated(1, "validation", {{"accuracy", 0.4}});
    step(console, 1, 3, {});
    CHECK(console.change() == "accuracy 0.4 after step 1  1 step in 2 s");
    console.validated(2, "validation", {{"accuracy", 0.5}});
    step(console, 2, 3, {});
    CHECK(console.change() == "accuracy 0.4 after step 1, 0.5 after step 2  2 steps in 4 s");
    step(console, 3, 3, {});
    CHECK(console.change() == "accuracy 0.4 after step 1, 0.5 after step 2  3 steps in 6 s");
  });
  piped([](RunConsole& console) {  // none after the last step
    console.validated(0, "validation", {{"accuracy", 0.4}});
    console.validated(1, "validation", {{"accuracy", 0.5}});
    step(console, 1, 2, {});
    step(console, 2, 2, {});
    CHECK(console.change() == "accuracy 0.4 before step 1, 0.5 after step 1  2 steps in 4 s");
  });
  piped([](RunConsole& console) {  // a resumed run: what was before is another process's
    console.validated(21, "validation-default", {{"loss", 2.5}});
    step(console, 21, 22, {});
    console.validated(22, "validation-default", {{"loss", 1.5}});
    step(console, 22, 22, {});
    CHECK(console.change() == "validation loss 2.5 after step 21, 1.5 after step 22  2 steps in 4 s");
  });
}

TEST_CASE("a line of the log stands above the bar, its level in colour") {
  const auto before = spdlog::default_logger();
  const std::string text = shown(
      80,
      [](RunConsole& console) {
        hexad::console::log_to_standard_error("hexad");
        console.progress(0, {"generation", 5, 10, 0});
        spdlog::warn("a disk\033[2J is full");
      },
      "xterm", nullptr);
  spdlog::set_default_logger(before);
  CHECK_MESSAGE(contains(text, "5/10\r\033[J["), text);
  CHECK_MESSAGE(contains(text, "] [hexad] [\033[33mwarning\033[0m] a disk\\x1b[2J is full\r\n"), text);
}

TEST_CASE("the log without a console has colours where a console has them") {
  const auto before = spdlog::default_logger();
  const auto logged = [](const char* terminal, const char* no_colour) {
    Pty pty(80);
    const int own = ::dup(STDERR_FILENO);
    set("TERM", terminal), set("COLORTERM", "truecolor"), set("NO_COLOR", no_colour);
    REQUIRE(::dup2(pty.descriptor(), STDERR_FILENO) == STDERR_FILENO);
    hexad::console::log_to_standard_error("hexad");
    spdlog::warn("a disk is full");
    ::dup2(own, STDERR_FILENO), ::close(own);
    set("COLORTERM", nullptr), set("NO_COLOR", nullptr);
    return pty.text();
  };
  const std::string coloured = logged("xterm", nullptr), dumb = logged("dumb", nullptr),
                    unwanted = logged("xterm", "1");
  spdlog::set_default_logger(before);
  CHECK_MESSAGE(contains(coloured, "warning\033["), coloured);
  for (const std::string& plain : {dumb, unwanted})
    CHECK_MESSAGE(contains(plain, "[warning] a disk is full\r\n"), plain);
}

TEST_CASE("a console that finds no thread is one all the same") {
  Pty pty(80);
  set("TERM", "xterm");
  {
    const test_support::NoThreads none;
    Options options = options_of(pty.file());
    options.redraws = std::chrono::milliseconds(1);
    RunConsole console(options);
    console.line("done");
  }
  CHECK(pty.text() == "done\r\n");
}

TEST_CASE("a dumb terminal gets no control characters") {
  const std::string text = shown(
      80,
      [](RunConsole& console) {
        console.progress(0, {"generation", 5, 10, 0});
        console.line("done");
      },
      "dumb");
  CHECK(text == "done\r\n");
}

TEST_CASE("control characters of a model's text are shown, not obeyed, and its lines are no lines of the console") {
  const auto write = [](RunConsole& console) {
    console.line(
        "a\x1b[2Jb\rc\nd\xff\xc2\x9b"
        "e \u00e9");
  };
  CHECK(piped(write) == "a\\x1b[2Jb\\x0dc\n  d\\xff\\u009be \u00e9\n");
  CHECK(shown(80, write) == "a\\x1b[2Jb\\x0dc\r\n  d\\xff\\u009be \u00e9\r\n");
}
