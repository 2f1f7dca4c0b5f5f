// `hexad plugin new`: what it writes, prints and refuses.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;
using plugin_test::Json;

namespace {

toy::Ended make(const TempDir& dir, const std::string& kind, const std::string& name) {
  return toy::run({"plugin", "new", kind, name, "--into", dir.path().string()});
}

}  // namespace

TEST_CASE("a new plugin carries its name, and the commands printed build and test it") {
  const TempDir dir;
  const toy::Ended made = make(dir, "loss_c", "my_loss");
  REQUIRE_MESSAGE(made.code == 0, made.err);
  CHECK(files_below(dir / "my_loss") ==
        std::vector<std::string>{".gitignore", "CMakeLists.txt", "README.md", "keys.yaml", "my_loss.c", "use.yaml"});
  for (const std::string& file : files_below(dir / "my_loss"))
    CHECK_MESSAGE(!contains(toy::read_text(dir / "my_loss" / file), "@NAME@"), file);
  const size_t next = made.out.find("next:\n");
  REQUIRE(next != std::string::npos);
  must(dir, made.out.substr(next + 6));
  CHECK(fs::exists(dir / "my_loss/build/lib/hexad/plugins/libmy_loss.hexad.json"));

  const Json json =
      Json::parse(toy::run({"plugin", "new", "loss_cpp", "other", "--into", dir.path().string(), "--json"}).out);
  CHECK(json.at("folder") == (dir / "other").string());
  CHECK(json.at("files").size() == 6);
  CHECK(fs::exists(fs::path(json.at("sdk").get<std::string>()) / "HexadSDKConfig.cmake"));
}

TEST_CASE("what it refuses, it says, and writes nothing") {
  const TempDir dir;
  const auto refuses = [&](const std::string& kind, const std::string& name, const std::string& says) {
    const toy::Ended run = make(dir, kind, name);
    CHECK(run.code == 2);
    CHECK_MESSAGE(contains(run.err, says), run.err);
  };
  refuses("loss_d", "mine", "no template 'loss_d', did you mean 'loss_c'?");
  refuses("frobnicator", "mine",
          "no template 'frobnicator'. There are backend, backend_torch, environment, generator, loss_c, loss_cpp, "
          "loss_cuda, reward_bash, reward_python, tracker_python");
  refuses("loss_c", "My-Loss", "the name 'My-Loss' must be 2 to 63 characters, a-z first, then a-z, 0-9 and _");
  refuses("loss_c", "../mine", "must be 2 to 63 characters");
  CHECK(fs::is_empty(dir.path()));
  fs::create_directory(dir / "mine");
  refuses("loss_c", "mine", "mine: exists already. Take another name, or another place with --into");
  CHECK(fs::is_empty(dir / "mine"));
  const toy::Ended nowhere = toy::run({"plugin", "new", "loss_c", "mine", "--into", (dir / "nowhere").string()});
  CHECK(nowhere.code == 2);
  CHECK_MESSAGE(contains(nowhere.err, "No such file or directory"), nowhere.err);
  CHECK(toy::run({"plugin", "new", "loss_c"}).code == 2);
}
