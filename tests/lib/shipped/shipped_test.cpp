// Configurations that came with the program, by name.
#include "lib/shipped/shipped.hpp"

#include "tests/support/said.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::error_of;
using toy::TempDir;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    dir.write("configs/start.yaml", "policy: {model_name: configs/model, data: [configs/model, configs/none, x]}\n");
    dir.write("configs/recipes/math.yaml", "a: 1\n");
    dir.write("configs/model/config.json", "{}");
  }
  fs::path path() const { return dir / "configs"; }
  fs::path file_of(const std::string& written) const { return shipped::file_of(written, written, path()); }

  TempDir dir;
};

}  // namespace

TEST_CASE("names are those of the files and of the recipes") {
  CHECK(shipped::names(Folder().path()) == std::vector<std::string>{"math", "start"});
  CHECK(shipped::names("/nowhere").empty());
}

TEST_CASE("a word that is no file is a name; paths, and files that are there, are themselves") {
  const Folder folder;
  CHECK(folder.file_of("start") == folder.path() / "start.yaml");
  CHECK(folder.file_of("math") == folder.path() / "recipes/math.yaml");
  CHECK(folder.file_of("start.yaml") == "start.yaml");
  CHECK(folder.file_of("./start") == "./start");
  CHECK(folder.file_of("") == "");
  const fs::path file = folder.dir.write("start", "a: 1\n");  // a parent that is named beside the file that names it
  CHECK(shipped::file_of(file, "start", folder.path()) == file);
  CHECK(shipped::file_of(folder.dir / "math", "math", folder.path()) == folder.path() / "recipes/math.yaml");
}

TEST_CASE("a name that is none lists those that there are") {
  const Folder folder;
  const std::string text = error_of([&] { folder.file_of("strat"); });
  SAYS(text,
       "strat: no such file, did you mean 'start'? By name there are the configurations that came with Hexad: "
       "math, start");
  const fs::path mine = folder.dir.write("mine.yaml", "a: 1\n");
  SAYS(error_of([&] { shipped::file_of(folder.dir / "mine", "mine", folder.path()); }),
       "did you mean " + mine.string() + "?");
  CHECK(shipped::file_of("strat", "strat", "/nowhere") == "strat");  // an installation without: the file is missing
}

TEST_CASE("paths of a shipped file count from where it lies, those of others do not") {
  const Folder folder;
  const yaml::Node node = shipped::read_file(folder.path() / "start.yaml", folder.path());
  CHECK(node.as_string("policy.model_name") == (folder.path() / "model").string());
  CHECK(node.as_string("policy.data.0") == (folder.path() / "model").string());
  CHECK(node.as_string("policy.data.1") == "configs/none");
  const fs::path copy = folder.dir.write("copy.yaml", "model_name: configs/model\n");
  CHECK(shipped::read_file(copy, folder.path()).as_string("model_name") == "configs/model");
}
