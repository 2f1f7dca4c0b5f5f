// What a strict program may read, by its command; and the folder that it has for temporary files.
#include "lib/process/program_folders.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "lib/process/tree.hpp"
#include "tests/lib/process/sandbox.hpp"

using namespace process_test;
namespace fs = std::filesystem;

namespace {

bool has(const std::vector<std::string>& list, const std::string& path) {
  return std::find(list.begin(), list.end(), path) != list.end();
}

// What a program writes in a tree with the sandbox of its command.
std::string tree_output(const std::vector<std::string>& command, bool strict) {
  auto [output, output_end] = make_pipe();
  const Descriptor nothing = null_device();
  const Tree tree("test", command, nothing.get(), output_end.get(), output_end.get(), sandbox_of(command, strict));
  output_end.close();
  return read_all(output);
}

struct Home {
  Home() {
    for (const char* folder :
         {"", "/work", "/venv", "/venv/bin", "/venv/lib", "/real", "/real/bin", "/real/lib", "/tmp"})
      fs::create_directory(dir / "home" + folder);
    write_text(dir / "home/work/reward.py", "");
    write_text(dir / "home/loose.py", "");
    write_text(dir / "home/real/bin/python9", "");
    fs::create_symlink("../../real/bin/python9", dir / "home/venv/bin/python");
    write_text(dir / "home/work/run", "#!" + (dir / "home/venv/bin/python") + " -u\n");
  }
  TempDir dir;
  std::string path = dir / "home";
  Variable home{"HOME", path}, temporary{"TMPDIR", path + "/tmp"};
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a strict program reads its own folder, its interpreter's installation, and no home folder") {
  const Home home;
  const std::string script = home.path + "/work/reward.py", loose = home.path + "/loose.py";
  const auto reads = sandbox_of({"sh", script, loose}, true).reads;
  CHECK(has(reads, script));
  CHECK(has(reads, home.path + "/work"));
  CHECK(has(reads, loose));
  CHECK_FALSE(has(reads, home.path));
  const auto by_text =
      sandbox_of({"/bin/sh", "-c", "cd / && exec '" + home.path + "/venv/bin/python' " + script}, true);
  for (const char* part : {"/venv/bin", "/venv/lib", "/real/bin", "/real/lib", "/real/bin/python9", "/work"})
    CHECK_MESSAGE(has(by_text.reads, home.path + part), part);
  CHECK(has(sandbox_of({home.path + "/work/run"}, true).reads, home.path + "/real/lib"));
  CHECK_FALSE(has(sandbox_of({"sh"}, true).reads, home.path + "/real/lib"));
}

TEST_CASE("a program writes its working folder and TMPDIR; a strict one no folder that holds the home folder") {
  const Home home;
  const std::string here = fs::current_path();
  CHECK(sandbox_of({"sh"}, false).writes == std::vector<std::string>{here, home.path + "/tmp"});
  CHECK(sandbox_of({"sh"}, false).reads.empty());
  const auto writes_in = [&](const std::string& folder, bool strict) {
    fs::current_path(folder);
    auto writes = sandbox_of({"sh"}, strict).writes;
    fs::current_path(here);
    return writes;
  };
  for (const std::string& wide : {home.path, home.dir.path, std::string("/"), home.path + "/tmp"}) {
    CHECK_MESSAGE(writes_in(wide, true).empty(), wide);
    CHECK_MESSAGE(writes_in(wide, false).size() == 2, wide);
  }
  CHECK(writes_in(home.path + "/work", true) == std::vector<std::string>{home.path + "/work"});
}

TEST_CASE("a strict tree has a folder of its own for temporary files, which goes with it, whatever modes it has") {
  const Home home;
  const std::string script =
      "echo x > $TMPDIR/a && mkdir $TMPDIR/b && echo y > $TMPDIR/b/c && ln -s / $TMPDIR/d && "
      "chmod 0 $TMPDIR/b $TMPDIR; echo $TMPDIR; ls /proc/self/fd";
  const std::string said = tree_output({"/bin/sh", "-c", script}, true), first = said.substr(0, said.find('\n'));
  CHECK_MESSAGE(first.starts_with(home.path + "/tmp/hexad-test-"), said);
  CHECK(said == first + "\n0\n1\n2\n3\n");  // 3: the folder that ls reads
  CHECK(fs::is_empty(home.path + "/tmp"));
  CHECK(tree_output({"/bin/sh", "-c", "echo $TMPDIR"}, false) == home.path + "/tmp\n");
}

TEST_CASE("what a strict tree leaves behind ends with it") {
  const Home home;
  const std::string said = tree_output({"/bin/sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & echo $!"}, true);
  CHECK(eventually([&] { return !alive(std::stoi(said)); }));
}

TEST_SUITE_END();

TEST_CASE("the file of a program is the first on PATH that can be run, or what the name says") {
  const TempDir dir;
  for (const char* folder : {"/a", "/b"}) fs::create_directory(dir.path + folder);
  write_text(dir / "a/tool", "");
  write_text(dir / "b/tool", "");
  ::chmod((dir / "b/tool").c_str(), 0700);
  const Variable path("PATH", dir / "a:" + dir / "b");
  CHECK(program_file("tool") == dir / "b/tool");
  CHECK(program_file(dir / "b/tool") == dir / "b/tool");
  for (const std::string& none : {std::string("toll"), dir / "a/tool", dir / "a"}) CHECK(program_file(none) == "");
}
