// Manual pages that the build has written.
#include <sstream>

#include "app/help/exit_codes.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

toy::fs::path folder() { return toy::hexad().parent_path().parent_path() / "share/man/man1"; }

// As a terminal of 80 columns shows it, without bold; groff's warnings are on standard error.
Ended shown(const std::string& name) {
  return Program({"groff"}, {"-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u", (folder() / (name + ".1")).string()}, "")
      .wait();
}

}  // namespace

TEST_CASE("each command that `hexad --help` lists has a page, as have its own, and hidden ones have none") {
  std::vector<std::string> names;
  for (const auto& entry : toy::fs::directory_iterator(folder())) names.push_back(entry.path().stem().string());
  const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (const char* name : {"hexad", "hexad-train", "hexad-config", "hexad-config-check", "hexad-help"})
    CHECK_MESSAGE(has(name), name);
  CHECK_FALSE(has("hexad-worker"));
  CHECK_FALSE(has("hexad-__man"));
}

TEST_CASE("pages are what groff reads without a warning, and have options and exit codes") {
  if (Program({"sh"}, {"-c", "command -v groff"}, "").wait().code != 0)
    return test_report::skipped("groff is not installed (tools/setup.sh --tests)");
  for (const auto& entry : toy::fs::directory_iterator(folder())) {
    const Ended page = shown(entry.path().stem().string());
    CHECK_MESSAGE(page.code == 0, entry.path().string());
    CHECK_MESSAGE(page.err == "", entry.path().string() << "\n" << page.err);
  }
  const std::string train = shown("hexad-train").out, all = shown("hexad").out;
  CHECK_MESSAGE(contains(train, "hexad train CONFIG [OVERRIDES...] [OPTIONS]"), train);
  CHECK_MESSAGE(contains(train, "\n       --fresh\n"), train);
  CHECK_MESSAGE(contains(train, "\n       130    interrupted."), train);
  CHECK_MESSAGE(contains(all, "hexad-convert(1)"), all);
  CHECK_MESSAGE(contains(all, "\n       rewards\n"), all);
}
