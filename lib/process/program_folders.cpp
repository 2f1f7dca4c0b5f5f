#include "lib/process/program_folders.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

namespace hexad::process {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> parts(std::string_view text, std::string_view separators) {
  std::vector<std::string> found;
  for (size_t at = 0; (at = text.find_first_not_of(separators, at)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    found.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

fs::path real(const fs::path& path) {
  std::error_code none;
  const fs::path found = fs::weakly_canonical(path, none);
  return none ? fs::path() : found;
}

// `inner` is `outer`, or below it; both are real.
bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Holds more than a program's own files.
bool is_wide(const fs::path& folder) {
  const fs::path given = real(folder);
  if (given.empty() || given == given.root_path()) return true;
  for (const std::string& each : {variable("HOME"), temporary_folder(), std::string("/tmp")}) {
    if (!each.empty() && is_within(real(each), given)) return true;
  }
  return false;
}

// The first bytes of a file.
std::string beginning_of(const fs::path& file) {
  const Descriptor input(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  char bytes[256];
  const ssize_t count = input ? ::read(input.get(), bytes, sizeof bytes) : 0;
  return std::string(bytes, static_cast<size_t>(std::max<ssize_t>(count, 0)));
}

class Reads {
 public:
  // A file or folder that the command names, or a program that it finds on PATH.
  void add_word(const std::string& word) {
    std::error_code none;
    if (fs::is_directory(word, none)) return add_folder(word);
    if (fs::is_regular_file(word, none)) {
      add(fs::absolute(word, none));
      add_folder(fs::absolute(word, none).parent_path());
      return add_program(fs::absolute(word, none));
    }
    if (word.find('/') != word.npos) return;
    if (const std::string program = program_file(word); !program.empty()) add_program(program);
  }
  void add_folder(const fs::path& folder) {
    if (!is_wide(folder)) add(folder);
  }
  std::vector<std::string> all() const { return {all_.begin(), all_.end()}; }

 private:
  void add(const fs::path& path) { all_.insert(path); }

  // The program, each link to it, what is installed around them, and its interpreter.
  void add_program(fs::path program) {
    constexpr int kMostLinks = 16;
    std::error_code none;
    for (int links = 0; links < kMostLinks && programs_.insert(program).second; ++links) {
      add(program);
      add_installation(program.parent_path());
      if (!fs::is_symlink(program, none)) break;
      program = (program.parent_path() / fs::read_symlink(program, none)).lexically_normal();
    }
    const std::string text = beginning_of(program);
    if (!text.starts_with("#!")) return;
    for (const std::string& word : parts(std::string_view(text).substr(2, text.find('\n') - 2), " \t\r")) {
      if (programs_.size() < kMostPrograms) add_word(word);
    }
  }
  void add_installation(const fs::path& folder) {
    if (folder.filename() == "shims") return add_folder(folder.parent_path());  // of pyenv, rbenv, asdf
    if (folder.filename() != "bin" && folder.filename() != "sbin") return;
    for (const char* part : {"bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg", "ssl"}) {
      const fs::path path = folder.parent_path() / part;
      if (!is_wide(path)) add(path);
    }
  }

  static constexpr size_t kMostPrograms = 64;  // of first lines that name each other
  std::set<fs::path> programs_;
  std::set<std::string> all_;
};

}  // namespace

std::string temporary_folder() {
  std::error_code none;
  const std::string named = variable("TMPDIR");
  return !named.empty() && fs::is_directory(named, none) ? fs::absolute(named, none).string() : "/tmp";
}

std::string program_file(const std::string& name) {
  const auto can_run = [](const fs::path& file) {
    std::error_code none;
    return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != name.npos) return can_run(name) ? name : "";
  std::string rest = variable("PATH");
  for (;;) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const fs::path file = fs::path(end == 0 ? "." : rest.substr(0, end)) / name;  // an empty one is our working folder
    if (can_run(file)) return file;
    if (end == rest.size()) return "";
    rest.erase(0, end + 1);
  }
}

Sandbox sandbox_of(const std::vector<std::string>& command, bool strict) {
  Sandbox sandbox = {.strict = strict};
  std::error_code none;
  const fs::path here = fs::current_path(none);
  if (!here.empty() && !(strict && is_wide(here))) sandbox.writes.push_back(here);
  if (!strict) {
    sandbox.writes.push_back(temporary_folder());
    return sandbox;
  }
  Reads reads;
  for (const std::string& argument : command) {
    reads.add_word(argument);
    for (const std::string& word : parts(argument, " \t\n'\"|&;<>()=`$")) reads.add_word(word);
  }
  for (const char* list : {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH"}) {
    for (const std::string& folder : parts(variable(list), ":")) reads.add_folder(folder);
  }
  if (const std::string home = variable("HOME"); !home.empty()) reads.add_folder(fs::path(home) / ".local/lib");
  sandbox.reads = reads.all();
  return sandbox;
}

}  // namespace hexad::process
