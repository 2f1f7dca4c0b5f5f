// Plugins that carry the same symbols, or different versions of one library, keep their own.
#include "core/plugin/kind/loss_plugin.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

constexpr const char* kUsesLibrary =
    "'-DEXTRA=int library_version(void);' '-DCOMPUTE_BODY=*HEXAD_F64(out->loss) = library_version();' ";

// The number that a plugin's compute leaves as its loss.
double version_seen_by(Registry& registry, const std::string& name) {
  LossPlugin loss(registry.load(Kind::loss, name), {}, PluginConfig("loss_fn", Json::object()));
  float logprob = 0;
  int64_t one = 1;
  const int64_t cu_seqlens[] = {0, 1};
  DLTensor tensor{&logprob, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, nullptr, 0};
  const hexad_named_tensor output{"logprobs", &tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
  DLTensor* const none = nullptr;
  return loss.compute({}, {1, 1, cu_seqlens, 1, 1}, {}, {&output, 1}, {&none, 1}).loss;
}

}  // namespace

TEST_CASE("two plugins that export a symbol of one name each call their own") {
  const PluginFolder folder;
  const auto carries = [](int version) {
    return fmt::format(
        "'-DEXTRA=__attribute__((visibility(\"default\"))) int library_version(void) {{ return {}; }}' "
        "'-DCOMPUTE_BODY=*HEXAD_F64(out->loss) = library_version();'",
        version);
  };
  folder.add("first", carries(1));
  folder.add("second", carries(2));
  Options options;
  options.paths = {folder.path()};
  Registry registry(options, nullptr);
  CHECK(version_seen_by(registry, "first") == 1);
  CHECK(version_seen_by(registry, "second") == 2);
  CHECK(version_seen_by(registry, "first") == 1);
}

TEST_CASE("two plugins that need different versions of one shared library each get theirs") {
  const PluginFolder folder, libraries;
  for (int version : {1, 2}) {
    const fs::path made = libraries.compile(
        "versioned", fmt::format("-Wl,-soname,libversioned.so.{}", version),
        fmt::format("__attribute__((visibility(\"default\"))) int library_version(void) {{ return {}; }}", version));
    fs::rename(made, libraries.path() / fmt::format("libversioned.so.{}", version));
    folder.add(fmt::format("needs_{}", version),
               fmt::format("-Wl,--no-as-needed {} -L{} -l:libversioned.so.{} -Wl,-rpath,{}", kUsesLibrary,
                           libraries.path().string(), version, libraries.path().string()));
  }
  Options options;
  options.paths = {folder.path()};
  Registry registry(options, nullptr);
  CHECK(version_seen_by(registry, "needs_1") == 1);
  CHECK(version_seen_by(registry, "needs_2") == 2);
}
