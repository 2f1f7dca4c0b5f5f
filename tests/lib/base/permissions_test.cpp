#include "lib/base/file/permissions.hpp"

#include <grp.h>

#include "tests/plugin/plugin_folder.hpp"
#include "tests/support/report.hpp"

using hexad::insecure;
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
  chmod(file.c_str(), 0644);
  chmod(inner.c_str(), 0777);
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 0777)");
  chmod(inner.c_str(), 01777);  // sticky does not help the directory that holds the plugin
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 1777)");
  chmod(inner.c_str(), 0755);
  chmod(folder.path().c_str(), 0777);
  CHECK(insecure(file) == folder.path().string() + " is writable by everyone (mode 0777)");
}

TEST_CASE("what a group may write is refused, unless the user is all of the group") {
  const PluginFolder folder;
  const fs::path inner = folder.path() / "plugins", file = inner / "a.so";
  fs::create_directory(inner);
  std::ofstream(file) << "x";
  chmod(inner.c_str(), 0775);  // as umask 002 leaves them
  chmod(file.c_str(), 0664);
  if (geteuid() != 0) return test_report::skipped("needs root, to give files to another group");
  constexpr gid_t kNobodys = 54321;  // no database knows it
  REQUIRE(getgrgid(kNobodys) == nullptr);
  CHECK(!insecure(file));  // root's own group
  REQUIRE(chown(file.c_str(), 0, kNobodys) == 0);
  CHECK(insecure(file) == file.string() + " is writable by its group (mode 0664)");
  REQUIRE(chown(file.c_str(), 0, 0) == 0);
  REQUIRE(chown(inner.c_str(), 0, 65534) == 0);  // nogroup, which others are in
  CHECK(insecure(file) == inner.string() + " is writable by its group (mode 0775)");
}

TEST_CASE("a user and a group that no database knows are the user's where their numbers are equal") {
  if (geteuid() != 0) return test_report::skipped("needs root, to become another user");
  const PluginFolder folder;
  const fs::path file = folder.path() / "a.so";
  std::ofstream(file) << "x";
  constexpr uid_t kStranger = 54321;
  chmod(folder.path().c_str(), 0755);
  for (const gid_t group : {kStranger, kStranger + 1}) {
    REQUIRE(chown(file.c_str(), kStranger, group) == 0);
    chmod(file.c_str(), 0664);
    REQUIRE(seteuid(kStranger) == 0);
    const auto problem = insecure(file);
    REQUIRE(seteuid(0) == 0);
    CHECK(problem ==
          (group == kStranger ? std::nullopt : std::optional(file.string() + " is writable by its group (mode 0664)")));
  }
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
