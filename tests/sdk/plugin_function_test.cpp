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

namespace {

// Two losses in one library: the second by hexad_plugin_desc.next.
constexpr const char* kPair = R"(
#include <hexad/abi.h>
#include <stdlib.h>
struct hexad_loss { int unused; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  (void)host, (void)call, (void)config;
  *out = malloc(sizeof **out);
  return HEXAD_OK;
}
static void destroy(hexad_loss* self) { free(self); }
static hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out) {
  (void)self, (void)call, (void)batch, (void)out;
  return HEXAD_OK;
}
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0}};
static const hexad_loss_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_loss_vtable, compute), 1, 0, 0, HEXAD_CAP_HOST_MEM,
                                         inputs, NULL, create, destroy, compute, NULL, NULL, NULL, NULL, NULL};
static const hexad_plugin_desc second = {
    HEXAD_STRUCT_SIZE(hexad_plugin_desc, next), HEXAD_ABI_MINOR, 0, HEXAD_KIND_LOSS, "pair_b", "1.2.0", "MIT", "",
    NULL, NULL, &vtable, NULL};
static const hexad_plugin_desc first = {
    HEXAD_STRUCT_SIZE(hexad_plugin_desc, next), HEXAD_ABI_MINOR, 0, HEXAD_KIND_LOSS, "pair", "1.2.0", "MIT", "",
    NULL, NULL, &vtable, &second};
const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* host) {
  (void)host;
  return &first;
}
)";

}  // namespace

TEST_CASE("every plugin of a library is in its manifest, and can be chosen by name") {
  const TempDir dir;
  dir.write("pair.c", kPair);
  dir.write("CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(pair LANGUAGES C)\nfind_package(HexadSDK REQUIRED)\n"
            "hexad_add_plugin(NAME pair KIND loss SOURCES pair.c)\n"
            "hexad_add_plugin(NAME named KIND loss SOURCES pair.c SHARED_CXX ALSO loss:pair_c backend:pair_d)\n");
  must(dir, fmt::format("cmake -S . -B build -DHexadSDK_DIR={}/lib/cmake/HexadSDK && cmake --build build && "
                        "cmake --install build --prefix installed",
                        prefix().string()));
  const plugin_test::Json further = {{{"kind", "loss"}, {"name", "pair_b"}}};
  for (const char* place : {"build", "installed"}) {
    const fs::path manifest = dir / place / "lib/hexad/plugins/libpair.hexad.json";
    CHECK(plugin_test::Json::parse(toy::read_text(manifest)).at("also") == further);
  }
  const auto named = plugin_test::Json::parse(toy::read_text(dir / "build/lib/hexad/plugins/libnamed.hexad.json"));
  CHECK(named.at("also").size() == 2);
  CHECK(named.at("also").at(1) == plugin_test::Json{{"kind", "backend"}, {"name", "pair_d"}});
  const std::string folder = (dir / "build/lib/hexad/plugins").string();
  const toy::Ended verified = toy::run({"plugin", "verify", "pair_b", "--path", folder, "--level", "1"});
  CHECK_MESSAGE(verified.code == 0, verified.out << verified.err);
  CHECK_MESSAGE(contains(verified.out, "loss 'pair_b' "), verified.out);
}
