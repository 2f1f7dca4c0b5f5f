// Every reason for which a plugin is refused, on plugins that are broken in that one way.
#include "core/plugin/loader.hpp"

#include "tests/plugin/fake_runtime.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

Options in(const PluginFolder& folder) {
  Options options;
  options.paths = {folder.path()};
  return options;
}

std::string load_error(const PluginFolder& folder, const std::string& name, Options options = {}) {
  options.paths = {folder.path()};
  return error_of([&] { Registry(options, nullptr).load(Kind::loss, name); });
}

}  // namespace

TEST_CASE("a good plugin is loaded once and stays") {
  const PluginFolder folder;
  const fs::path library = folder.add("toy");
  Registry first(in(folder), nullptr), second(in(folder), nullptr);
  const LoadedPlugin& plugin = first.load(Kind::loss, "toy");
  CHECK(&plugin == &second.load(Kind::loss, "toy"));
  CHECK(&plugin == &second.load(Kind::loss, library.string()));
  CHECK(plugin.label() ==
        fmt::format("loss 'toy' 1.2.0 ({}, sha256 {}...)", library.string(), digest_of(library).substr(0, 12)));
  CHECK(plugin.desc->loss->num_inputs == 1);
}

TEST_CASE("a truncated or changed file is refused before it is opened") {
  const PluginFolder folder;
  const fs::path library = folder.add("toy");
  const auto size = fs::file_size(library);
  const std::string digest = digest_of(library);
  fs::resize_file(library, 3000);
  CHECK(load_error(folder, "toy") ==
        fmt::format("{}: 3000 bytes, manifest says {} (sha256 {}...); copy incomplete on this host?", library.string(),
                    size, digest.substr(0, 12)));
  fs::resize_file(library, size);  // right size, zeros at the end
  CHECK(
      contains(load_error(folder, "toy"), fmt::format("manifest says {}; another build, or a damaged copy?", digest)));
  // A manifest that agrees with the truncated file does not help.
  fs::resize_file(library, 3000);
  folder.write_manifest(library, "toy");
  CHECK(contains(load_error(folder, "toy"), "copy incomplete on this host?"));
}

TEST_CASE("undefined symbols are named") {
  const PluginFolder folder;
  const fs::path library =
      folder.add("toy", "'-DEXTRA=int foo(void);' '-DCREATE_BODY=foo();' -Wl,--unresolved-symbols=ignore-all");
  CHECK(load_error(folder, "toy") == library.string() +
                                         ": cannot load: undefined symbol: foo. A plugin must not link engine symbols; "
                                         "check its dependencies with ldd");
}

TEST_CASE("the host ABI that a plugin needs is checked in the manifest and in the binary") {
  const PluginFolder folder;
  folder.add("by_manifest", "", {{"abi", {{"min_host_minor", 7}}}});
  folder.add("by_binary", "-DMIN_MINOR=7");
  folder.add("other_major", "", {{"abi", {{"major", 2}}}});
  for (const char* name : {"by_manifest", "by_binary"}) {
    CHECK(contains(load_error(folder, name),
                   fmt::format("needs host ABI 1.7, this engine provides 1.{0}. Upgrade the engine or "
                               "rebuild with -DHEXAD_TARGET_MINOR={0}",
                               HEXAD_ABI_MINOR)));
  }
  CHECK(contains(load_error(folder, "other_major"),
                 "built for ABI 2, this engine supports 1. Rebuild it with this engine's SDK"));
}

TEST_CASE("kind and name of manifest and binary agree") {
  const PluginFolder folder;
  folder.add("toy", "'-DNAME=\"b\"' -DKIND=HEXAD_KIND_GENERATOR");
  CHECK(contains(load_error(folder, "toy"), "libtoy.so: manifest says loss 'toy', binary says generator 'b'"));
  folder.add("third", "-DKIND=9");
  CHECK(contains(load_error(folder, "third"), "manifest says loss 'third', binary says kind 9 'third'"));
}

TEST_CASE("descriptor and vtable are checked") {
  const PluginFolder folder;
  folder.add("small", "-DSTRUCT_SIZE=8");
  CHECK(contains(load_error(folder, "small"), "the descriptor has struct_size 8, its first release needs"));
  folder.add("lacking", "-DCOMPUTE=0");
  CHECK(contains(load_error(folder, "lacking"), "its vtable lacks the required function compute"));
}

TEST_CASE("a plugin for another machine or LibTorch is refused") {
  const PluginFolder folder;
  folder.add("arm", "", {{"arch", "aarch64-linux-gnu"}});
  CHECK(contains(load_error(folder, "arm"), "built for aarch64-linux-gnu, this engine runs on x86_64-linux-gnu"));
  folder.add("torch", "", {{"requires", {{"libtorch", "2.10.0"}}}});
  const std::string text = error_of([&] { Registry(in(folder), &fake_runtime()).load(Kind::loss, "torch"); });
  CHECK(contains(text,
                 "built with LibTorch 2.10.0, this process has 2.11.0+cpu. Rebuild it with 2.11.0, or give it a worker "
                 "of its own"));
  folder.add("glibc", "", {{"requires", {{"glibc", "9.0"}}}});
  CHECK(contains(load_error(folder, "glibc"), "needs glibc 9.0, this machine has 2."));
  folder.add("cuda", "", {{"requires", {{"cuda", "12.1"}}}});
  const std::string cuda = error_of([&] { Registry(in(folder), &fake_runtime()).load(Kind::loss, "cuda"); });
  CHECK(contains(cuda, "built with CUDA 12.1, this process has 13.0. Rebuild it with CUDA 13.0"));
  folder.add("same", "", {{"requires", {{"libtorch", "2.11.0+cu130"}, {"cuda", "13.0"}, {"glibc", "2.17"}}}});
  CHECK(error_of([&] { Registry(in(folder), &fake_runtime()).load(Kind::loss, "same"); }) == "(no error)");
}

TEST_CASE("a folder that others may write is refused, or used with a warning") {
  const PluginFolder folder;
  folder.add("toy");
  chmod(folder.path().c_str(), 0777);
  CHECK(contains(
      load_error(folder, "toy"),
      fmt::format("refused, others could have changed it: {} is writable by everyone (mode 0777). Mend the mode or "
                  "owner, or set plugins.allow_insecure_dirs",
                  folder.path().string())));
  Options options;
  options.allow_insecure_dirs = true;
  CHECK(load_error(folder, "toy", options) == "(no error)");
}

TEST_CASE("a folder that others may write is refused also where plugin and manifest are links out of it") {
  const PluginFolder real, folder;
  const fs::path library = real.add("toy"), open = folder.path() / "open";
  fs::create_directory(open);
  for (const char* name : {"libtoy.so", "libtoy.hexad.json"}) fs::create_symlink(real.path() / name, open / name);
  Options options;
  options.paths = {open};
  const auto said = [&] { return error_of([&] { Registry(options, nullptr).load(Kind::loss, "toy"); }); };
  chmod(open.c_str(), 0777);
  CHECK(contains(said(), open.string() + " is writable by everyone (mode 0777)"));
  chmod(open.c_str(), 0755);
  CHECK(said() == "(no error)");
}

TEST_CASE("a manifest that others may write is refused, with its library") {
  const PluginFolder folder;
  folder.add("toy");
  const fs::path manifest = folder.path() / "libtoy.hexad.json";
  chmod(manifest.c_str(), 0666);
  CHECK(contains(load_error(folder, "toy"), manifest.string() + " is writable by everyone (mode 0666)"));
}

TEST_CASE("libraries that a plugin brings are under its rule, and found beside it") {
  const PluginFolder folder;
  const fs::path libs = folder.path() / "libs",
                 made = folder.compile("dep", "-fvisibility=default", "int dep_of_toy = 3;");
  fs::create_directory(libs);
  fs::rename(made, libs / made.filename());
  folder.add("toy", fmt::format("'-DEXTRA=extern int dep_of_toy;' '-DCREATE_BODY=dep_of_toy = 4;' -Wl,--no-as-needed "
                                "-L{} -ldep '-Wl,-rpath,$ORIGIN/libs'",
                                libs.string()));
  chmod(libs.c_str(), 0777);
  CHECK(
      contains(load_error(folder, "toy"),
               fmt::format("refused, others could have changed it: libtoy.so needs libdep.so: it is looked for in {0}, "
                           "and {0} is writable by everyone (mode 0777)",
                           libs.string())));
  chmod(libs.c_str(), 0755);
  CHECK(load_error(folder, "toy") == "(no error)");
}

TEST_CASE("a plugin whose library was exchanged under its name since this process opened it is refused") {
  const PluginFolder folder;
  const fs::path library = folder.add("toy");
  CHECK(load_error(folder, "toy") == "(no error)");
  folder.compile("other", "'-DNAME=\"other\"' -DKIND=HEXAD_KIND_LOSS");
  fs::rename(folder.path() / "libother.so", library);  // under another plugin's name, so that nothing remembers it
  folder.write_manifest(library, "other");
  CHECK(contains(load_error(folder, "other"), "the loader has opened another file of this name"));
}

TEST_CASE("a library that is a link out of its folder is refused") {
  const PluginFolder folder, elsewhere;
  const fs::path real = elsewhere.add("toy"), link = folder.path() / "libtoy.so";
  fs::create_symlink(real, link);
  folder.write_manifest(link, "toy");
  CHECK(load_error(folder, "toy") ==
        fmt::format("{}: is a link to {}, outside of its manifest's directory", link.string(), real.string()));
}

TEST_CASE("pins decide what loads") {
  const PluginFolder folder;
  const fs::path library = folder.add("toy");
  Options options;
  options.pin = {{"other", "sha256:00"}};
  CHECK(contains(load_error(folder, "toy", options), "'toy' is not listed in plugins.pin, and nothing unlisted loads"));
  options.pin = {{"toy", "sha256:00"}};
  CHECK(contains(load_error(folder, "toy", options),
                 "plugins.pin.toy is sha256:00, the plugin has sha256:" + digest_of(library)));
  options.pin = {{"toy", "sha256:" + digest_of(library)}};
  CHECK(load_error(folder, "toy", options) == "(no error)");
}

TEST_CASE("plugins can be switched off, and a changed one needs a restart") {
  const PluginFolder folder;
  folder.add("toy");
  Options off;
  off.enabled = false;
  CHECK(load_error(folder, "toy", off) == "loss plugin 'toy' is not loaded: plugins.enabled is false");
  CHECK(load_error(folder, "toy") == "(no error)");
  folder.add("toy", "'-DEXTRA=int changed = 1;'");
  CHECK(contains(load_error(folder, "toy"), "changed since this process loaded it"));
}
