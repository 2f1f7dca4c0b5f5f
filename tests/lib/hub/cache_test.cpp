// Where the Hub's cache is, and which snapshot a revision stands for.
#include "lib/hub/cache.hpp"

#include "tests/support/hub_cache.hpp"
#include "tests/support/said.hpp"

using namespace hexad;
using plugin_test::error_of;
using test_support::HubCache;
using test_support::kCommit;
using test_support::kLater;
using test_support::kOther;
using test_support::Variable;
namespace fs = std::filesystem;

namespace {

const std::string kFolder = "models--owner--name";

hub::Repository at(const std::string& revision) { return {hub::Kind::model, "owner/name", revision}; }

struct Revisions {
  Revisions() {
    for (const std::string& commit : {kCommit, kLater, kOther}) cache.file(kFolder, "config.json", "{}", commit);
    cache.ref(kFolder, "main", kCommit + "\n");
    cache.ref(kFolder, "v1.0", kOther);
  }
  fs::path of(const std::string& revision) const { return hub::snapshot_of(at(revision), cache.dir / kFolder); }
  std::string error(const std::string& revision) const {
    return error_of([&] { of(revision); });
  }

  HubCache cache;
};

}  // namespace

TEST_CASE("the variables that say where the cache is, the first of them that is set to something") {
  const Variable home("HOME", "/home/x"), a("HF_HUB_CACHE", "/a"), b("HUGGINGFACE_HUB_CACHE", "/b"), c("HF_HOME", "/c"),
      d("XDG_CACHE_HOME", "/d");
  CHECK(hub::cache_folder() == "/a");
  {
    const Variable relative("HF_HUB_CACHE", "some/folder");
    CHECK(hub::cache_folder() == fs::current_path() / "some/folder");
  }
  const Variable no_a("HF_HUB_CACHE", "");
  CHECK(hub::cache_folder() == "/b");
  const Variable no_b("HUGGINGFACE_HUB_CACHE", std::nullopt);
  CHECK(hub::cache_folder() == "/c/hub");
  {
    const Variable tilde("HF_HOME", "~/hf");
    CHECK(hub::cache_folder() == "/home/x/hf/hub");
  }
  const Variable no_c("HF_HOME", std::nullopt);
  CHECK(hub::cache_folder() == "/d/huggingface/hub");
  const Variable no_d("XDG_CACHE_HOME", std::nullopt);
  CHECK(hub::cache_folder() == "/home/x/.cache/huggingface/hub");
  const Variable no_home("HOME", std::nullopt);
  CHECK(hub::cache_folder().empty());
}

TEST_CASE("branches, tags, commits and the beginnings of commits") {
  const Revisions revisions;
  CHECK(revisions.of("main") == revisions.cache.snapshot(kFolder, kCommit));
  CHECK(revisions.of("v1.0") == revisions.cache.snapshot(kFolder, kOther));
  CHECK(revisions.of(kLater) == revisions.cache.snapshot(kFolder, kLater));
  CHECK(revisions.of("beef") == revisions.cache.snapshot(kFolder, kOther));
  CHECK(revisions.of("0a1b8") == revisions.cache.snapshot(kFolder, kLater));
  // A branch wins over the commit that begins so, as in git.
  revisions.cache.ref(kFolder, "beef", kCommit);
  CHECK(revisions.of("beef") == revisions.cache.snapshot(kFolder, kCommit));
}

TEST_CASE("a revision that the cache has not is answered with those it has") {
  const Revisions revisions;
  const std::string folder = (revisions.cache.dir / kFolder).string();
  CHECK(revisions.error("v2") ==
        "the revision 'v2' of owner/name is not in the Hub's cache; " + folder +
            " has: main, v1.0, 0a1b7777, 0a1b8888, beef9999. Fetch it: hf download owner/name --revision v2");
  CHECK(revisions.error("0a1b") == "the revision '0a1b' of owner/name is the beginning of several commits: " + kCommit +
                                       ", " + kLater + ". Give more of its digits");
  SAYS(revisions.error("bee"), "'bee' of owner/name is not in the Hub's cache");  // too short to mean a commit
  for (int i = 0; i < 10; ++i) revisions.cache.ref(kFolder, "branch" + std::to_string(i), kCommit);
  SAYS(revisions.error("v2"), "branch9, main, v1.0 and 3 more. Fetch it: ");
  revisions.cache.dir.write("models--empty/version.txt", "1");
  CHECK(error_of([&] {
          hub::snapshot_of({hub::Kind::model, "empty"}, revisions.cache.dir / "models--empty");
        }) == "the revision 'main' of empty is not in the Hub's cache; " +
                  (revisions.cache.dir / "models--empty").string() + " has: nothing. Fetch it: hf download empty");
}

TEST_CASE("a revision that is a path or no word is refused, whatever lies there") {
  const Revisions revisions;
  revisions.cache.ref(kFolder, "refs/pr/1", kCommit);
  for (const char* revision : {"refs/pr/1", "../refs/main", "..", "", "ma in", "ma\nin", "\x1b[2J"}) {
    CAPTURE(revision);
    SAYS(revisions.error(revision),
         "is no revision of owner/name: want a branch, a tag or a commit, of letters, digits, '.', '_', '+' and '-'");
  }
  SAYS(revisions.error("\x1b[2J"), "'\\x1b[2J' is no revision");
}

TEST_CASE("a ref that holds no commit, or one that is not there") {
  const Revisions revisions;
  const std::string main = (revisions.cache.dir / kFolder / "refs/main").string();
  for (const std::string text : {"../../../secret", "..", ".", "", "a b", "$(a)"}) {
    revisions.cache.ref(kFolder, "main", text);
    CHECK(revisions.error("main") == main + " holds '" + text +
                                         "', want a commit. Remove the file, and fetch it anew: "
                                         "hf download owner/name");
  }
  revisions.cache.ref(kFolder, "main", std::string(100000, 'a'));
  SAYS(revisions.error("main"), "refs/main holds 'more than a commit', want a commit");
  const std::string gone(40, 'c');
  revisions.cache.ref(kFolder, "main", gone);
  CHECK(revisions.error("main") == main + " names the commit " + gone + ", and " +
                                       revisions.cache.snapshot(kFolder, gone).string() +
                                       " is not there. Fetch it: hf download owner/name");
}

TEST_CASE("a ref that is a pipe or leads out of the repository, and a snapshot that does") {
  const Revisions revisions;
  const fs::path main = revisions.cache.dir / kFolder / "refs/main", secret = revisions.cache.dir.write("secret", "s");
  fs::remove(main);
  REQUIRE(::mkfifo(main.c_str(), 0600) == 0);
  SAYS(revisions.error("main"), "refs/main: not a regular file");
  fs::remove(main);
  fs::create_symlink(secret, main);
  SAYS(revisions.error("main"), "refs/main is a link to " + secret.string() + ", outside of ");
  fs::create_directory_symlink("/usr", revisions.cache.snapshot(kFolder, std::string(40, 'd')));
  SAYS(revisions.error(std::string(40, 'd')),
       "is a link to /usr, outside of the repository's folder. Remove it, and fetch it anew: hf download owner/name");
}
