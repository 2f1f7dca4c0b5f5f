// The lines of `hexad tokenize`: what is wrong with one names it.
#include "lib/text/tokenizer/command.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lib/base/error.hpp"

namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("a text that the tokenizer's regex gives up on is named by file and line") {
  const fs::path folder = fs::temp_directory_path() / ("hexad_tokenize_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", "(?:a+a+)+[bc]"}}}, {"behavior", "Isolated"}};
  const json tokenizer = {{"pre_tokenizer", split},
                          {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", json::array()}}}};
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  std::ofstream(folder / "in.jsonl") << R"({"text": "aab"})"
                                     << "\n"
                                     << json{{"text", std::string(64, 'a')}}.dump() << "\n";
  std::ostringstream out;
  std::string error;
  try {
    hexad::text::tokenize_file(folder, folder / "in.jsonl", out, false, {});
  } catch (const hexad::Error& caught) {
    error = caught.what();
  }
  CHECK(out.str() == "{\"token_ids\":[0,0,1]}\n");
  CHECK_MESSAGE(error.starts_with((folder / "in.jsonl").string() + ":2: " + (folder / "tokenizer.json").string()),
                error);
  CHECK_MESSAGE(error.find("the regex gave up on a text of 64 bytes") != std::string::npos, error);
  fs::remove_all(folder);
}

TEST_CASE("marks before the first line are skipped, and named where they are of UTF-16") {
  const fs::path folder = fs::temp_directory_path() / ("hexad_tokenize_marks_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const json tokenizer = {{"model", {{"type", "BPE"}, {"vocab", {{"a", 0}}}, {"merges", json::array()}}}};
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  const auto said = [&](const std::string& bytes) {
    std::ofstream(folder / "in.jsonl") << bytes;
    std::ostringstream out;
    try {
      hexad::text::tokenize_file(folder, folder / "in.jsonl", out, false, {});
      return out.str();
    } catch (const hexad::Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(said("\xEF\xBB\xBF\n{\"text\": \"a\"}\n") == "{\"token_ids\":[0]}\n");
  CHECK(said("").empty());
  CHECK(said("\xFF\xFE{").find(": UTF-16, want UTF-8: iconv") != std::string::npos);
  CHECK(said("\xEF{}").find("not UTF-8") != std::string::npos);
  CHECK(said("[{\"text\": \"a\"}]").find("wanted a JSON object a line, got a list") != std::string::npos);
  fs::remove_all(folder);
}
