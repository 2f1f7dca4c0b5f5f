// Every first-party plugin, and the backend and generator of the SDK's examples, pass the conformance kit.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

namespace {

std::vector<toy::fs::path> first_party_plugins() {
  std::vector<toy::fs::path> libraries;
  for (const auto& entry :
       toy::fs::directory_iterator(toy::fs::path(toy::hexad()).parent_path().parent_path() / "lib/hexad/plugins")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".so") && !name.ends_with("_check.so")) libraries.push_back(entry.path());
  }
  return libraries;
}

}  // namespace

TEST_CASE("every first-party plugin passes every level that runs without a GPU") {
  const std::vector<toy::fs::path> libraries = first_party_plugins();
  CHECK(libraries.size() >= 4);
  for (const toy::fs::path& library : libraries) {
    const toy::Ended run = toy::run({"plugin", "verify", library.string()});
    CHECK_MESSAGE(run.code == 0, run.out << run.err);
    for (const char* level : {"L1 descriptor ok", "L2 hosts      ok", "L3 lifecycle  ok", "L4 errors     ok",
                              "L5 numbers    ok", "L6 threads    ok"}) {
      CHECK_MESSAGE(run.out.find(level) != std::string::npos, run.out);
    }
  }
}
