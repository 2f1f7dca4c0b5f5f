#include "core/manifest/discovery.hpp"

#include <cstdlib>
#include <sstream>

#include "app/plugin/plugin.hpp"
#include "core/config/declaration/catalog.hpp"
#include "tests/plugin/plugin_folder.hpp"
#include "tests/support/hub_cache.hpp"

using namespace hexad::plugin;
using namespace plugin_test;
using test_support::Variable;

namespace {

// Manifests need no library to be found.
void add_manifest(const PluginFolder& folder, const std::string& file, const std::string& name,
                  const Json& changes = Json::object()) {
  folder.write_manifest(folder.path() / ("lib" + file + ".so"), name, changes);
}

Options searching(std::initializer_list<fs::path> paths) {
  Options options;
  options.paths = paths;
  return options;
}

std::string not_found(const Options& options, const std::string& name) {
  return error_of([&] { find_plugin(options, Kind::loss, name); });
}

}  // namespace

TEST_CASE("folders are searched in order: the configuration's, the environment's, the user's, the engine's") {
  const Variable data("XDG_DATA_HOME", "/data");
  const PluginFolder first, second;
  setenv("HEXAD_PLUGIN_PATH", (second.path().string() + "::" + first.path().string()).c_str(), 1);
  const auto folders = search_path(searching({first.path()}));
  unsetenv("HEXAD_PLUGIN_PATH");
  REQUIRE(folders.size() == 5);  // the repeated one counts once
  CHECK(folders[0].path == first.path());
  CHECK(folders[0].origin == "plugins.paths");
  CHECK(folders[1].path == second.path());
  CHECK(folders[1].origin == "HEXAD_PLUGIN_PATH");
  CHECK(folders[2].origin == "user");
  CHECK(folders[2].path == "/data/hexad/plugins");
  CHECK_FALSE(folders[2].trusted);
  CHECK(folders[3].origin == "engine");
  CHECK(folders[3].path.string().ends_with("lib/hexad/plugins"));
  CHECK(folders[4].path.string().ends_with("lib/hexad/plugins/1"));
}

TEST_CASE("the first folder wins and the later plugin is shadowed") {
  const PluginFolder first, second;
  add_manifest(first, "a", "my_loss");
  add_manifest(second, "b", "my_loss");
  add_manifest(second, "c", "my_loss", {{"kind", "generator"}});
  const Options options = searching({first.path(), second.path()});
  CHECK(find_plugin(options, Kind::loss, "my_loss").library() == first.path() / "liba.so");
  CHECK(find_plugin(options, Kind::generator, "my_loss").library() == second.path() / "libc.so");
  const Discovery found = discover(options);
  CHECK(found.candidates[1].shadowed_by == first.path() / "liba.hexad.json");
  CHECK(found.candidates[2].shadowed_by.empty());
}

TEST_CASE("two of one name in one folder are an error of both") {
  const PluginFolder folder;
  add_manifest(folder, "a", "my_loss");
  add_manifest(folder, "b", "my_loss");
  CHECK(not_found(searching({folder.path()}), "my_loss") ==
        fmt::format("{0}/liba.hexad.json and {0}/libb.hexad.json are both loss 'my_loss': remove one",
                    folder.path().string()));
}

TEST_CASE("not found names the nearest plugin and what was searched") {
  const PluginFolder folder;
  add_manifest(folder, "a", "grpo");
  add_manifest(folder, "b", "other");
  std::ofstream(folder.path() / "libz.hexad.json") << "{";
  const std::string text = not_found(searching({folder.path(), "/nowhere/plugins"}), "grpo2");
  CHECK(contains(text, "loss plugin 'grpo2' not found. Did you mean 'grpo'? searched: " + folder.path().string() +
                           " (3 manifests), /nowhere/plugins (missing), "));
  CHECK(contains(text, "Set plugins.paths or HEXAD_PLUGIN_PATH"));
  CHECK(contains(text, "unreadable: " + folder.path().string() + "/libz.hexad.json: not JSON"));
  CHECK(!contains(not_found(searching({}), "zzzzzzzzzzzz"), "Did you mean"));
}

TEST_CASE("an absolute path names the library or its manifest") {
  const PluginFolder folder;
  const fs::path library = folder.path() / "liba.so";
  CHECK(not_found({}, library.string()) == library.string() + ": no such plugin file");
  const std::string parent = library.parent_path().string();
  CHECK(not_found({}, parent) == parent + ": is a folder: name a .so in it, or list the folder in plugins.paths");
  std::ofstream(library) << "x";
  CHECK(not_found({}, library.string()) ==
        fmt::format(
            "{0}/liba.so: its manifest {0}/liba.hexad.json is missing. hexad_add_plugin writes it: copy both files",
            folder.path().string()));
  folder.write_manifest(library, "my_loss");
  CHECK(find_plugin({}, Kind::loss, library.string()).library() == library);
  CHECK(find_plugin({}, Kind::loss, (folder.path() / "liba.hexad.json").string()).library() == library);
  CHECK(error_of([&] { find_plugin({}, Kind::backend, library.string()); }) ==
        library.string() + ": is a loss plugin, wanted a backend");
}

TEST_CASE("a relative path counts from the working directory, and a file without one is told its path") {
  const PluginFolder folder;
  std::ofstream(folder.path() / "liba.so") << "x";
  folder.write_manifest(folder.path() / "liba.so", "my_loss");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const char* path : {"./liba.so", "./liba.hexad.json", "sub/../liba.so"})
    CHECK(find_plugin({}, Kind::loss, path).library() == folder.path() / "liba.so");
  hexad::config::Catalog catalog(searching({folder.path()}));
  const hexad::config::Installed* found = catalog.find(Kind::loss, "./liba.so");
  REQUIRE(found);
  CHECK(found == catalog.find(Kind::loss, "my_loss"));  // no second one of the same
  const std::string gone = not_found({}, "./libb.so"), bare = not_found({}, "liba.so");
  fs::current_path(before);
  CHECK(gone == (folder.path() / "libb.so").string() + ": no such plugin file");
  CHECK_MESSAGE(contains(bare, "loss plugin 'liba.so' not found. A file is named by its path: ./liba.so. searched: "),
                bare);
}

TEST_CASE("further plugins of a library are found by their names, and by its path where their kind is wanted") {
  const PluginFolder folder;
  std::ofstream(folder.path() / "liba.so") << "x";
  add_manifest(folder, "a", "first",
               {{"also", {{{"kind", "loss"}, {"name", "second"}}, {{"kind", "generator"}, {"name", "draws"}}}},
                {"config", {{"keys", {{"x", {{"type", "int"}, {"meaning", "the first one's"}}}}}}}});
  const Options options = searching({folder.path()});
  const Candidate second = find_plugin(options, Kind::loss, "second");
  CHECK(second.library() == folder.path() / "liba.so");
  CHECK(second.manifest->sha256 == find_plugin(options, Kind::loss, "first").manifest->sha256);
  CHECK(second.manifest->config.empty());
  CHECK(find_plugin(options, Kind::generator, "draws").manifest->name == "draws");
  CHECK(find_plugin({}, Kind::generator, (folder.path() / "liba.so").string()).manifest->name == "draws");
  CHECK(find_plugin({}, Kind::loss, (folder.path() / "liba.so").string()).manifest->name == "first");
  std::ostringstream text;
  list_plugins(options, false, text);
  for (const char* name : {"loss      first ", "loss      second ", "generator draws "})
    CHECK_MESSAGE(contains(text.str(), name), text.str());
  // One that has a manifest of its own is that manifest's.
  add_manifest(folder, "b", "second");
  CHECK(find_plugin(options, Kind::loss, "second").library() == folder.path() / "libb.so");
}

TEST_CASE("a plugin of another kind is told as such") {
  const PluginFolder folder;
  add_manifest(folder, "a", "mine", {{"kind", "backend"}});
  const std::string text = not_found(searching({folder.path()}), "mine");
  CHECK_MESSAGE(contains(text, "loss plugin 'mine' not found. 'mine' is a backend. searched: "), text);
}

TEST_CASE("options come from the plugins section") {
  const Options options = options_from(Json::parse(
      R"({"paths": ["/a", "b"], "pin": {"x": "sha256:00"}, "allow_insecure_dirs": true, "enabled": null})"));
  CHECK(options.enabled);
  CHECK(options.allow_insecure_dirs);
  CHECK(options.paths == std::vector<fs::path>{"/a", "b"});
  CHECK(options.pin.at("x") == "sha256:00");
  CHECK(options_from(nullptr).enabled);
  const auto error = [](const char* text) { return error_of([&] { options_from(Json::parse(text)); }); };
  CHECK(error(R"({"enabled": 1})") == "plugins.enabled must be true or false, got 1");
  CHECK(error(R"({"paths": "/a"})") == "plugins.paths must be a list of directories, got \"/a\"");
  CHECK(error(R"({"pin": {"x": "00"}})") ==
        "plugins.pin must be a map from plugin name to sha256:<hex digits>, got {\"x\":\"00\"}");
}

TEST_CASE("list and info say what is found, shadowed and refused, and why") {
  const PluginFolder first, second;
  first.add("toy");
  second.add("toy");
  add_manifest(second, "gone", "gone");
  std::ofstream(second.path() / "libz.hexad.json") << "{";
  const Options options = searching({first.path(), second.path()});
  std::ostringstream text, json, info;
  CHECK(list_plugins(options, false, text) == 0);
  CHECK(contains(text.str(),
                 "loss      toy                  1.2.0     ok        " + first.path().string() + "/libtoy.so"));
  CHECK(contains(text.str(),
                 "loss      toy                  1.2.0     shadowed  " + second.path().string() + "/libtoy.so"));
  CHECK(contains(text.str(), "libgone.so: cannot be opened: No such file or directory. Its manifest names it"));
  CHECK(contains(text.str(), "libz.hexad.json: not JSON"));
  CHECK(contains(text.str(), "searched:\n  plugins.paths      " + first.path().string() + " (1 manifest)\n"));

  list_plugins(options, true, json);
  const Json parsed = Json::parse(json.str());
  CHECK(parsed["plugins"][0]["status"] == "ok");
  CHECK(parsed["plugins"][1]["status"] == "refused");  // gone
  CHECK(parsed["plugins"][2]["status"] == "shadowed");
  CHECK(parsed["searched"][0]["manifests"] == 1);

  plugin_info(options, "toy", false, info);
  CHECK(contains(info.str(), "kind      loss\nname      toy\nversion   1.2.0\n"));
  CHECK(contains(info.str(), "memory    host\n"));
  CHECK(contains(error_of([&] { plugin_info(options, "tay", true, info); }),
                 "plugin 'tay' not found. Did you mean 'toy'?"));
}
