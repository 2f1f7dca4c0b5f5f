// Where the libraries of wheels are found, and which are refused.
#include "lib/installation/wheel.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "lib/installation/home.hpp"
#include "tests/support/hub_cache.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using installation::Site;
using installation::Wheel;
using plugin_test::error_of;
using test_support::Variable;
using toy::TempDir;
namespace fs = std::filesystem;

namespace {

const Wheel kWheel = {"mine", "2.1.0", "lib/libmine.so", "libmine-2.1.0"};
const char* const kLibc = "/usr/lib/x86_64-linux-gnu/libc.so.6";  // a library that is linked with no wheel

fs::path add_wheel(const TempDir& dir, const std::string& site, const std::string& version) {
  dir.write(site + "/mine/lib/libmine.so", "");
  if (!version.empty()) dir.write(site + "/mine/version.py", "# made\n__version__ = '" + version + "'\n");
  return dir / site;
}

std::string refused(const std::vector<fs::path>& sites) {
  return error_of([&] { installation::require(kLibc, kWheel, sites); });
}

}  // namespace

TEST_CASE("the Python that the program is installed in comes first, then what is unpacked, then other Pythons") {
  const TempDir dir;
  for (const char* site : {"venv/lib/python3.11/site-packages", "venv/lib64/python3.9/dist-packages",
                           "venv/lib/python2.7/site-packages", "user/.local/lib/python3.12/site-packages"})
    add_wheel(dir, site, "2.1.0");
  const Variable home("HOME", (dir / "user").string()), cache("HEXAD_CACHE", ""), other("XDG_CACHE_HOME", "");
  const std::vector<fs::path> sites = installation::sites(dir / "venv", kWheel);
  REQUIRE(sites.size() >= 5);
  CHECK(sites[0] == dir / "venv/lib/python3.11/site-packages");
  CHECK(sites[1] == dir / "venv/lib64/python3.9/dist-packages");
  CHECK(sites[2] == dir / "venv/lib/hexad/wheels");
  CHECK(sites[3] == dir / "user/.cache/hexad/libmine-2.1.0");
  CHECK(sites[4] == dir / "user/.local/lib/python3.12/site-packages");
  const Variable xdg("XDG_CACHE_HOME", "/x");
  CHECK(installation::sites(dir / "venv", kWheel)[3] == "/x/hexad/libmine-2.1.0");
  const Variable own("HEXAD_CACHE", "/own");
  CHECK(installation::sites(dir / "venv", kWheel)[3] == "/own/libmine-2.1.0");
}

TEST_CASE("the first site that has the right version decides, which is read of the module or of pip's record") {
  const TempDir dir;
  dir.write("source/mine/README", "a folder of that name");
  const fs::path first = add_wheel(dir, "first", "2.1.0+cpu"), second = add_wheel(dir, "second", "");
  dir.write("second/mine-2.0.9.dist-info/METADATA", "");
  const std::optional<Site> found = installation::find({dir / "none", dir / "source", first, second}, kWheel);
  REQUIRE(found);
  CHECK(found->folder == first);
  CHECK(found->version == "2.1.0+cpu");
  CHECK(installation::find({second, first}, kWheel)->folder == first);
  CHECK(installation::find({second}, kWheel)->version == "2.0.9");
  CHECK_FALSE(installation::find({dir / "none"}, kWheel));
  CHECK(installation::require(kLibc, kWheel, {first}).folder == first);
}

TEST_CASE("libraries of a wheel, and of those that pip installs beside it") {
  const TempDir dir;
  const fs::path site = add_wheel(dir, "site", "2.1.0");
  dir.write("site/nvidia/cu13/lib/libx.so", "");
  CHECK(Site{site, ""}.libraries(kWheel) == std::vector<fs::path>{site / "mine/lib", site / "nvidia/cu13/lib"});
}

TEST_CASE("another version is refused in one line that names both, and so is a wheel that is nowhere") {
  const TempDir dir;
  const fs::path other = add_wheel(dir, "site", "2.0.0+cu130");
  const std::string text = refused({other, add_wheel(dir, "third", "2.2.0")});
  SAYS(text, (other / "mine").string() +
                 " is mine 2.0.0+cu130, and this Hexad is built with mine 2.1.0, whose C++ is "
                 "another: pip install mine==2.1.0, or `hexad setup`");
  CHECK(text.find('\n') == text.npos);
  dir.write("gone/mine-1.9.dist-info/METADATA", "");
  dir.write("gone/mine/lib/libmine_one.so", "");  // its libraries have other names
  SAYS(refused({dir / "gone"}), "is mine 1.9, and this Hexad is built with mine 2.1.0");
  SAYS(refused({dir / "a", dir / "b"}), "mine 2.1.0, which this Hexad is built with, is not in " +
                                            (dir / "a").string() + ", " + (dir / "b").string() +
                                            ": pip install mine==2.1.0, or `hexad setup`");
}

TEST_CASE("an old wheel of another Python hides none that is installed as its refusal says") {
  const TempDir dir;
  const fs::path old = add_wheel(dir, "user/.local/lib/python3.10/site-packages", "2.0.0");
  const Variable home("HOME", (dir / "user").string()), cache("HEXAD_CACHE", (dir / "cache").string());
  const auto all = [&] { return installation::sites(dir / "opt", kWheel); };
  SAYS(refused(all()), (old / "mine").string() + " is mine 2.0.0");
  const fs::path newer = add_wheel(dir, "user/.local/lib/python3.12/site-packages", "2.1.0");  // pip install
  CHECK(installation::require(kLibc, kWheel, all()).folder == newer);
  const fs::path set_up = add_wheel(dir, "cache/libmine-2.1.0", "2.1.0");  // hexad setup
  CHECK(installation::require(kLibc, kWheel, all()).folder == set_up);
  add_wheel(dir, "opt/lib/hexad/wheels", "2.0.0");  // of a release that lay there before
  CHECK(installation::require(kLibc, kWheel, all()).folder == set_up);
}

TEST_CASE("what the loader would take itself is looked at first") {
  const TempDir dir;
  const fs::path other = add_wheel(dir, "other", "2.0.0"), right = add_wheel(dir, "right", "2.1.0");
  const Variable path("LD_LIBRARY_PATH", "/nowhere:" + (other / "mine/lib").string());
  SAYS(refused({right}), "is mine 2.0.0, and this Hexad is built with mine 2.1.0");
}

TEST_CASE("a library that is linked with none of a wheel opens nothing of it") {
  CHECK_NOTHROW(installation::open_needed(kLibc, kWheel, RTLD_NOW));
}

TEST_CASE("the folder of the user's own files") {
  const Variable home("HOME", "/home/x"), data("XDG_DATA_HOME", "");
  CHECK(installation::user_folder() == "/home/x/.local/share/hexad");
  const Variable set("XDG_DATA_HOME", "/data");
  CHECK(installation::user_folder() == "/data/hexad");
  const Variable relative("XDG_DATA_HOME", "data");  // as the specification has it: ignored
  CHECK(installation::user_folder() == "/home/x/.local/share/hexad");
}
