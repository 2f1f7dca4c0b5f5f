// `hexad help`, exit codes, and that all these texts name commands that there are.
#include "app/help/exit_codes.hpp"
#include "app/help/topics.hpp"

#include <cstdlib>
#include <set>

#include "lib/base/error.hpp"
#include "lib/text/text_width.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
using namespace hexad;

TEST_CASE("topics are listed, printed, and the nearest one named") {
  const Ended list = toy::run({"help"});
  CHECK(list.code == 0);
  for (const char* name : {"config", "data", "rewards", "trackers", "launch", "plugins", "exit-codes", "metrics"}) {
    CHECK_MESSAGE(contains(list.out, fmt::format("\n  {:12} ", name)), list.out);
    const Ended topic = toy::run({"help", name});
    CHECK(topic.code == 0);
    CHECK_MESSAGE(topic.out.starts_with(std::string(name) + ": "), topic.out);
  }
  const Ended typo = toy::run({"help", "reward"});
  CHECK(typo.code == 2);
  CHECK(typo.err == "hexad: no help about 'reward'; did you mean 'rewards'?\n");
  CHECK(toy::run({"help", "whatsoever"}).err == "hexad: no help about 'whatsoever'; `hexad help` lists the topics\n");
}

TEST_CASE("help about a command is the command's own") {
  CHECK(toy::run({"help", "config", "check"}).out == toy::run({"config", "check", "--help"}).out);
  CHECK(toy::run({"help", "config", "chekc"}).err == "hexad: no help about 'config chekc'; did you mean 'check'?\n");
}

TEST_CASE("a topic fits a terminal of 80 columns, and its first line says what it is about") {
  for (const help::Topic& topic : help::topics()) {
    CAPTURE(topic.name);
    CHECK(topic.text.starts_with(topic.name + ": " + topic.title + "\n\n"));
    CHECK(topic.text.ends_with("\n"));
    std::istringstream lines(topic.text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(text::text_width(line) < 80, line);
  }
}

TEST_CASE("commands and options that topics name are there, and so are the pages") {
  int commands = 0, pages = 0;
  for (const help::Topic& topic : help::topics()) {
    std::istringstream text(topic.text);
    std::string before;
    for (std::string word; text >> word; before = word) {
      while (!word.empty() && std::string(".,;:)`").find(word.back()) != std::string::npos) word.pop_back();
      if (word.starts_with("docs/")) {
        CHECK_MESSAGE(toy::fs::exists(toy::source_dir() / word), word);
        ++pages;
      }
      if ((before != "hexad" && before != "`hexad") || word.starts_with("--")) continue;
      CHECK_MESSAGE(toy::run({word, "--help"}).code == 0, topic.name << ": hexad " << word);
      ++commands;
    }
  }
  CHECK(commands > 20);
  CHECK(pages > 8);
}

TEST_CASE("the table of exit codes has those that errors have, and no other") {
  std::set<int> codes = {0, 130, 143};  // and what signals end in order
  for (const ErrorKind kind :
       {ErrorKind::config, ErrorKind::plugin, ErrorKind::worker, ErrorKind::data, ErrorKind::internal})
    codes.insert(Error(kind, "").exit_code());
  std::set<int> table;
  for (const help::ExitCode& each : help::exit_codes()) table.insert(each.code);
  CHECK(table == codes);
  for (const char* said :
       {"plan a rank whose memory is too small", "Of report --serve: Ctrl-C", "Of report --serve: SIGTERM"})
    CHECK_MESSAGE(contains(help::exit_codes_markdown(), said), said);
  CHECK(contains(toy::run({"help", "exit-codes"}).out, "\n  4  a worker was lost for good\n     A rank has crashed"));
}

TEST_CASE("the page of exit codes is generated") {
  const toy::fs::path page = toy::source_dir() / "docs/exit_codes.md";
  if (std::getenv("HEXAD_UPDATE_DOCS")) std::ofstream(page) << help::exit_codes_markdown();
  CHECK_MESSAGE(toy::read_text(page) == help::exit_codes_markdown(), "run tools/update_config_docs.sh");
}
