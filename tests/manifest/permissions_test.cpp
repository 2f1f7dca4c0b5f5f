#include "core/manifest/permissions.hpp"

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

TEST_CASE("a file that only its owner and root can change is fine, also below a sticky directory") {
  const PluginFolder folder;
  std::ofstream(folder.path() / "a.so") << "x";
  chmod((folder.path() / "a.so").c_str(), 0644);
  CHECK(!insecure(folder.path() / "a.so"));
}

TEST_CASE("what others may write is named with its mode") {
  const PluginFolder folder;
  const fs::path inner = folder.path() / "plugins", file = inner / "a.so";
  fs::create_directory(inner);
  std::ofstream(file) << "x";
  chmod(inner.c_str(), 0755);
  chmod(file.c_str(), 0666);
  CHECK(insecure(file) == file.string() + " is writable by everyone (mode 0666)");
  chmod(file.c_str(), 0664);
  CHECK(insecure(file) == file.string() + " is writable by its group (mode 0664)");
  chmod(file.c_str(), 0644);
  chmod(inner.c_str(), 0777);
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 0777)");
  chmod(inner.c_str(), 01777);  // sticky does not help the directory that holds the plugin
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 1777)");
  chmod(inner.c_str(), 0755);
  chmod(folder.path().c_str(), 0777);
  CHECK(insecure(file) == folder.path().string() + " is writable by everyone (mode 0777)");
}

TEST_CASE("a link is judged by what it points to") {
  const PluginFolder folder;
  const fs::path real = folder.path() / "real.so", link = folder.path() / "link.so";
  std::ofstream(real) << "x";
  chmod(real.c_str(), 0666);
  fs::create_symlink(real, link);
  CHECK(insecure(link) == real.string() + " is writable by everyone (mode 0666)");
  CHECK(contains(insecure(folder.path() / "gone.so").value_or(""), "No such file"));
}
