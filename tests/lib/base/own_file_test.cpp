// What a link in a model's folder names elsewhere is not copied.
#include "lib/base/file/own_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/support/said.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::error_of;
using plugin_test::read_text;
namespace fs = std::filesystem;

namespace {

std::string copied(const toy::TempDir& dir, const fs::path& folder, const std::string& name) {
  const std::string error = error_of([&] { copy_own_file(folder, name, dir / "copy"); });
  return error == "(no error)" ? read_text(dir / "copy") : error;
}

}  // namespace

TEST_CASE("files of the folder are copied with their mode, by links within it too, and by any name of the folder") {
  const toy::TempDir dir;
  dir.write("model/file", "text");
  dir.write("model/deep/file", "deep");
  fs::permissions(dir / "model/file", static_cast<fs::perms>(0750));
  fs::create_symlink("file", dir / "model/relative");
  fs::create_symlink(dir / "model/deep/file", dir / "model/absolute");
  fs::create_symlink("../model/deep/../file", dir / "model/around");
  fs::create_directory_symlink("model", dir / "other_name");
  for (const char* folder : {"model", "other_name", "model/deep/.."}) {
    for (const char* name : {"file", "relative", "around"}) CHECK(copied(dir, dir / folder, name) == "text");
    CHECK(copied(dir, dir / folder, "absolute") == "deep");
    CHECK(leads_out(dir / folder, "absolute").empty());
  }
  CHECK(copied(dir, dir / "model", "file") == "text");
  CHECK((fs::status(dir / "copy").permissions() & fs::perms::mask) == static_cast<fs::perms>(0750));
}

TEST_CASE("a link that leads out of the folder is refused, whatever way it takes") {
  const toy::TempDir dir;
  const auto secret = dir.write("secret", "secret");
  dir.write("model-b/file", "of the neighbour whose name begins alike");
  dir.write("model/file", "text");
  fs::create_symlink(secret, dir / "model/absolute");
  fs::create_symlink("../secret", dir / "model/relative");
  fs::create_symlink("relative", dir / "model/twice");
  fs::create_symlink("../model-b/file", dir / "model/neighbour");
  fs::create_directory_symlink("..", dir / "model/up");
  for (const char* name : {"absolute", "relative", "twice", "neighbour", "up/secret"}) {
    CAPTURE(name);
    const fs::path real = fs::canonical(dir / "model" / name);
    const std::string wanted = fmt::format(
        "{} is a link to {}, outside of {}, and a link out of a model's folder is not copied. Put the file in the "
        "place of the link",
        (dir / "model" / name).string(), real.string(), (dir / "model").string());
    CHECK(copied(dir, dir / "model", name) == wanted);
    CHECK(error_of([&] { require_own_file(dir / "model", name); }) == wanted);
    CHECK(error_of([&] { read_own_file(dir / "model", name); }) == wanted);
    CHECK(error_of([&] { require_own_file(dir / "model", name, real); }) == wanted);
    CHECK(leads_out(dir / "model", name) == real);
    CHECK_FALSE(fs::exists(dir / "copy"));
  }
  require_own_file(dir / "model", "file");
  require_own_file(dir / "model", "none");
  require_own_file(dir / "model", "absolute", dir / "model/file");  // what it led to when it was opened
  CHECK(read_own_file(dir / "model", "file") == "text");
}

TEST_CASE("the blobs of Hugging Face's cache belong to its snapshots, and nothing that they lead to") {
  const toy::TempDir dir;
  const fs::path hub = "hub/models--owner--name", snapshot = dir / hub / "snapshots/0a1b";
  dir.write(hub / "blobs/77", "blob");
  const auto secret = dir.write("secret", "secret");
  dir.write(hub / "refs/main", "0a1b");
  fs::create_directories(snapshot / "deep");
  fs::create_symlink("../../blobs/77", snapshot / "tokenizer.json");
  fs::create_symlink("../../../blobs/77", snapshot / "deep/tokenizer.json");
  fs::create_symlink("../../refs/main", snapshot / "of_the_cache");
  fs::create_symlink(secret, dir / hub / "blobs/88");
  fs::create_symlink("../../blobs/88", snapshot / "by_a_blob");
  CHECK(copied(dir, snapshot, "tokenizer.json") == "blob");
  CHECK(copied(dir, snapshot / "deep", "tokenizer.json") == "blob");
  SAYS(copied(dir, snapshot, "of_the_cache"), "refs/main, outside of ");
  SAYS(copied(dir, snapshot, "by_a_blob"), "a link to " + secret.string() + ", outside of ");

  // A data set's as well.
  dir.write("datasets--x/blobs/1", "rows");
  fs::create_directories(dir / "datasets--x/snapshots/0a1b");
  fs::create_symlink("../../blobs/1", dir / "datasets--x/snapshots/0a1b/file");
  CHECK(copied(dir, dir / "datasets--x/snapshots/0a1b", "file") == "rows");

  // A folder `blobs` elsewhere is none of a cache's, and neither is one that is itself a link.
  dir.write("blobs/1", "x");
  fs::create_directories(dir / "snapshots/0a1b");
  fs::create_symlink("../../blobs/1", dir / "snapshots/0a1b/file");
  SAYS(copied(dir, dir / "snapshots/0a1b", "file"), "blobs/1, outside of ");
  fs::create_directories(dir / "models--x/snapshots/0a1b");
  fs::create_directory_symlink(dir.path(), dir / "models--x/blobs");
  fs::create_symlink("../../blobs/secret", dir / "models--x/snapshots/0a1b/file");
  SAYS(copied(dir, dir / "models--x/snapshots/0a1b", "file"), "a link to " + secret.string() + ", outside of ");
}

TEST_CASE("what is no file is not waited for, and what is not there is named") {
  const toy::TempDir dir;
  fs::create_directory(dir / "model");
  REQUIRE(::mkfifo((dir / "model/pipe").c_str(), 0600) == 0);
  CHECK(copied(dir, dir / "model", "pipe") == (dir / "model/pipe").string() + ": not a regular file");
  CHECK(copied(dir, dir / "model", "none") ==
        (dir / "model/none").string() + ": cannot be opened: No such file or directory");
}
