#include "app/help/exit_codes.hpp"

#include <fmt/format.h>

#include "lib/text/text_width.hpp"

namespace hexad::help {
namespace {

constexpr ExitCode kCodes[] = {
    {0, "done",
     "The command has done what it was asked for. Of train: the run has reached its last step, the end of its data, or "
     "what stops it early."},
    {1, "not as it should be",
     "doctor has found a problem, plan a rank whose memory is too small, plugin verify a failed check; or an error "
     "inside Hexad itself, whose message asks for a report."},
    {2, "wrong usage, configuration, model or data",
     "The message says what, where, what was wanted and how to mend it. Nothing changes by trying again."},
    {3, "a plugin was refused, or has failed",
     "The message names the plugin, its file and the call. `hexad plugin info NAME` and `hexad plugin verify FILE.so` "
     "say more."},
    {4, "a worker was lost for good",
     "A rank has crashed, hangs or cannot be reached, and cluster.max_restarts are used up. The message names rank and "
     "last call; worker-RANK.log in the run's log folder has what it said. The same command goes on from the newest "
     "checkpoint."},
    {130, "interrupted",
     "Of train: Ctrl-C, SIGTERM, SIGHUP or SIGXCPU. The last finished step is saved where checkpointing is enabled, "
     "and the same command goes on from there; before the first step nothing is left of the run. Of report --serve: "
     "Ctrl-C, its usual end."},
    {143, "ended", "Of report --serve: SIGTERM."},
};

constexpr std::string_view kTitle = "exit-codes: what the exit status of a command says";

}  // namespace

std::span<const ExitCode> exit_codes() { return kCodes; }

std::string exit_codes_text() {
  constexpr size_t kWidth = 78;
  std::string text = std::string(kTitle) + "\n";
  for (const ExitCode& each : kCodes) {
    text += fmt::format("\n{:>3}  {}\n", each.code, each.name);
    const std::string lines = text::wrapped(each.meaning, kWidth - 5);
    for (size_t at = 0; at < lines.size();) {
      const size_t end = std::min(lines.find('\n', at), lines.size());
      const size_t begin = std::min(lines.find_first_not_of(' ', at), end);
      text += "     " + lines.substr(begin, end - begin) + "\n";
      at = end + 1;
    }
  }
  return text;
}

std::string exit_codes_markdown() {
  std::string text =
      "# Exit codes\n\nWhat the exit status of a command says. This page is generated from `app/help/exit_codes.cpp`, "
      "as\n"
      "`hexad help exit-codes` and the manual pages are; `tools/update_config_docs.sh` writes it anew.\n\n"
      "| status | name | meaning |\n|---|---|---|\n";
  for (const ExitCode& each : kCodes) text += fmt::format("| {} | {} | {} |\n", each.code, each.name, each.meaning);
  return text;
}

}  // namespace hexad::help
