// What an installed program finds without being told: configurations by name, LibTorch, plugins of the user's own.
#include <doctest/doctest.h>

#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using toy::Ended;
using toy::TempDir;
namespace fs = std::filesystem;

namespace {

// The program's end under a shell's words, in which $0 is the program.
Ended under(const std::string& script) {
  return toy::Program({"bash", "-c", script, toy::hexad().string()}, {}, "").wait();
}

}  // namespace

TEST_CASE("a configuration that came with the program is known by its name, in any folder") {
  const TempDir dir;
  const std::string in = "cd '" + dir.path().string() + "' && exec $0 ";
  const Ended checked = under(in + "config check quickstart");
  CHECK(checked.code == 0);
  SAYS(checked.out + checked.err, "quickstart: valid");
  CHECK(under(in + "config check rloo_math_1B policy.model_name=" +
              (toy::source_dir() / "configs/quickstart_model").string())
            .code == 0);
  const Ended shown = under(in + "config show quickstart");
  SAYS(shown.out,
       "model_name: " + (toy::hexad().parent_path().parent_path() / "share/hexad/configs/quickstart_model").string());
  for (const char* command : {"train", "config check", "config show", "eval", "data show"}) {
    const Ended unknown = under(in + command + " quikstart");
    CHECK(unknown.code == 2);
    SAYS(unknown.out + unknown.err,
         "quikstart: no such file, did you mean 'quickstart'? By name there are the "
         "configurations that came with Hexad: cispo_math_1B, dapo_qwen2.5_7B, ");
  }
  // As a parent, and behind a file of that name.
  dir.write("mine.yaml", "defaults: quickstart\ngrpo: {seed: 7}\n");
  SAYS(under(in + "config show mine.yaml").out, "seed: 7");
  dir.write("quickstart", "defaults: quickstart_async\ngrpo: {seed: 8}\n");
  SAYS(under(in + "config show quickstart").out, "seed: 8");
}

TEST_CASE("another LibTorch is refused before a run begins, in one line that names both") {
  if (!fs::exists(toy::hexad().parent_path().parent_path() / "lib/libhexad_runtime.so"))
    return test_report::skipped("built without LibTorch");
  const TempDir dir;
  dir.write("torch/lib/libtorch_cpu.so", "");
  dir.write("torch/version.py", "__version__ = '2.10.0+cpu'\n");
  const std::string in = "cd '" + dir.path().string() + "' && LD_LIBRARY_PATH=$PWD/torch/lib exec $0 ";
  for (const std::string& command :
       {std::string("train quickstart"), std::string("eval quickstart"),
        "generate '" + (toy::source_dir() / "configs/quickstart_model").string() + "' --prompt a"}) {
    const Ended refused = under(in + command);
    CHECK(refused.code == 2);
    SAYS(refused.err, "hexad: " + (dir / "torch").string() +
                          " is torch 2.10.0+cpu, and this Hexad is built with torch 2.11.0, whose C++ is another: ");
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
  }
  CHECK_FALSE(fs::exists(dir / "logs"));
  const Ended told = under(in + "doctor");
  CHECK(told.code == 1);
  SAYS(told.out, "is torch 2.10.0+cpu, and this Hexad is built with torch 2.11.0");
}

TEST_CASE("a plugin in the user's own folder is found") {
  const TempDir dir;
  fs::create_directories(dir / "hexad/plugins");
  const Ended listed = under("XDG_DATA_HOME='" + dir.path().string() + "' exec $0 plugin list");
  CHECK(listed.code == 0);
  SAYS(listed.out, (dir / "hexad/plugins").string() + " (0 manifests)");
}

TEST_CASE("setup says what it wants") {
  const Ended none = under("exec $0 setup --from /nowhere/wheels");
  CHECK(none.code == 1);
  SAYS(none.err, "setup: --from /nowhere/wheels: no such folder");
  SAYS(under("exec $0 setup --help").out, "Folder that has the wheels");
}
