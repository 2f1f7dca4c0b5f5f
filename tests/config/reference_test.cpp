// docs/config.md is what the schema says.
#include "core/config/reference.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/config/schema/schema.hpp"

using namespace hexad::config;

namespace {

std::filesystem::path page() {
  const char* source = std::getenv("HEXAD_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "docs/config.md";
}

}  // namespace

TEST_CASE("the reference page is generated from the schema") {
  const std::string wanted = reference_markdown();
  if (std::getenv("HEXAD_UPDATE_DOCS")) std::ofstream(page()) << wanted;
  std::ifstream in(page());
  std::ostringstream text;
  text << in.rdbuf();
  CHECK_MESSAGE(text.str() == wanted, "docs/config.md is out of date: run tools/update_config_docs.sh");
}

TEST_CASE("the reference page has every key") {
  const std::string text = reference_markdown();
  for (const Key& key : schema().keys()) {
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    const bool shown =
        text.find("`" + name + "`") != std::string::npos || text.find("## " + key.path + "\n") != std::string::npos;
    CHECK_MESSAGE(shown, key.path);
  }
}

TEST_CASE("every key is described once, and says what becomes of it") {
  std::vector<std::string> seen;
  for (const Key& key : schema().keys()) {
    CHECK_MESSAGE(std::ranges::find(seen, key.path) == seen.end(), key.path << " is there twice");
    seen.push_back(key.path);
    CHECK_MESSAGE((!key.meaning.empty() || !key.note.empty()), key.path);
    if (key.path.find('.') != std::string::npos) {
      CHECK_MESSAGE(schema().find(key.path.substr(0, key.path.rfind('.'))), key.path << " has no section");
    }
  }
}
