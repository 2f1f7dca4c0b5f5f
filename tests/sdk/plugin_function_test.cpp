// hexad_add_plugin(): arguments that it cannot carry into the manifest.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;

TEST_CASE("a value for the conformance kit that would be cut in two is refused") {
  const TempDir dir;
  const std::string function = (toy::source_dir() / "sdk/cmake/HexadPlugin.cmake").string();
  dir.write("plugin.cmake", fmt::format("include({})\nhexad_add_plugin(NAME my_loss KIND loss SOURCES a.c "
                                        "VERIFY_CONFIG scale=2 \"words=a|b\")\n",
                                        function));
  const Shell run = sh(dir, "cmake -P plugin.cmake");
  CHECK(run.code != 0);
  CHECK_MESSAGE(contains(run.text, "hexad_add_plugin(my_loss): VERIFY_CONFIG scale=2;words=a|b has a '|'"), run.text);
}
