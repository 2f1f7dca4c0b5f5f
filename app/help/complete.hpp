// What may come next on a command line: shells ask the program itself, so that what they offer is what it takes.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hexad::help {

struct Candidates {
  struct Word {
    std::string text, about;
  };
  std::vector<Word> words;
  bool files = false;  // files too
};

// Keys of a configuration, for overrides; `config`: the file that the line names, or "".
using Keys = std::function<std::vector<std::string>(const std::string& config)>;

// For the last of `words`, which begins what is wanted; the words before it follow the program's name. Keys end with =,
// and those below a section are one word with a dot at its end until the dot is there.
Candidates complete(const CLI::App& app, const std::vector<std::string>& words, const Keys& keys);

// A line a word, "text<TAB>about", and ":files" at the end where files are wanted.
std::string lines_of(const Candidates& candidates);

}  // namespace hexad::help
