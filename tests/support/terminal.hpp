// A program on a real terminal of tmux, of a width that the test chooses.
#pragma once
#include <cstdlib>
#include <sstream>

#include "tests/support/toy/program.hpp"

namespace toy {

// What `tmux` is asked, and what it prints.
inline std::string asked_of_tmux(const fs::path& socket, const std::string& words) {
  const std::string command = fmt::format("env -u TMUX tmux -S '{}' -f /dev/null {} 2>&1", socket.string(), words);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char piece[4096];
  for (size_t count; (count = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, count);
  ::pclose(pipe);
  return text;
}

// Runs a line of the shell `sh` (or of `shell`, which reads it as it is typed) until the terminal is destroyed.
class Terminal {
 public:
  // `environment`: "NAME=value ..." before the command.
  Terminal(int columns, const std::string& command, const std::string& environment = "") {
    dir_.write("run.sh", fmt::format("while [ ! -e {0}/go ]; do sleep 0.02; done\n{1} {2}\necho $? > {0}/code\n"
                                     "sleep 3600\n",
                                     dir_.path().string(), environment, command));
    ask(fmt::format("new-session -d -x {} -y 50 'exec sh {}'", columns, (dir_ / "run.sh").string()));
    ask(fmt::format("pipe-pane -o 'cat > {}'", (dir_ / "bytes").string()));
    dir_.write("go", "");
  }
  ~Terminal() { ask("kill-server"); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void resize(int columns) { ask(fmt::format("resize-window -x {} -y 50", columns)); }
  void type(const std::string& keys) { ask("send-keys " + keys); }
  bool has_ended() const { return !read_text(dir_ / "code").empty(); }
  int code() const { return std::stoi(read_text(dir_ / "code")); }
  // All that the program has written.
  std::string bytes() const { return read_text(dir_ / "bytes"); }
  // What stands on the terminal, and above it what has scrolled away; a line that it had to break is one line here.
  std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::istringstream text(ask("capture-pane -p -J -S -"));
    for (std::string line; std::getline(text, line);) found.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    return found;
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : lines()) all += line + "\n";
    return all;
  }

 private:
  std::string ask(const std::string& words) const { return asked_of_tmux(dir_ / "tmux", words); }

  TempDir dir_;
};

}  // namespace toy
