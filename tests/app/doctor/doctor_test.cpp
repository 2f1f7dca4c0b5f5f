// The command: its table, its JSON, its exit code; and that a probe which fails is a line like the others.
#include <doctest/doctest.h>

#include "app/doctor/table.hpp"
#include "tests/app/doctor/found.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/program.hpp"

using namespace doctor_test;
using toy::Ended;
using Json = nlohmann::ordered_json;

namespace {

const Findings kFindings = {{Level::ok, "cpu", "fast"},
                            {Level::note, "disk", "small\x1b[2J\nproblem  fake", "buy one"},
                            {Level::problem, "gpu", "none", "take another machine"}};

// What `hexad doctor` says under a shell's words.
Ended under(const std::string& script) {
  return toy::Program({"bash", "-c", script, toy::hexad().string()}, {}, "").wait();
}

// The finding of this topic and level with these words; the test fails if there is none.
void check_line(const Json& answer, const std::string& topic, const std::string& level, const std::string& words) {
  bool found = false;
  for (const Json& each : answer.at("findings"))
    found = found || (each.at("topic") == topic && each.at("level") == level &&
                      contains(each.at("text").get<std::string>(), words));
  CHECK_MESSAGE(found, "wanted " << level << " " << topic << " \"" << words << "\" in " << answer.dump(2));
}

}  // namespace

TEST_CASE("the table has a line a finding, how to mend it below, and the counts") {
  CHECK(table(kFindings, false) ==
        "ok       cpu       fast\n"
        "note     disk      small\\x1b[2J\\nproblem  fake\n"
        "                   mend: buy one\n"
        "problem  gpu       none\n"
        "                   mend: take another machine\n"
        "1 problem, 1 note\n");
  CHECK(table({}, false) == "no problems, no notes\n");
  const std::string coloured = table(kFindings, true);
  CHECK(contains(coloured, "\x1b[32mok      \x1b[0m cpu"));
  CHECK(contains(coloured, "\x1b[31mproblem \x1b[0m gpu"));
  CHECK(contains(coloured, "small\\x1b[2J"));  // a stranger's stay words
}

TEST_CASE("the JSON has the same, and the counts") {
  const Json answer = json_of({.version = "1.2", .commit = "abc"}, kFindings);
  CHECK(answer.at("version") == "1.2");
  CHECK(answer.at("commit") == "abc");
  CHECK(answer.at("problems") == 1);
  CHECK(answer.at("notes") == 1);
  REQUIRE(answer.at("findings").size() == 3);
  CHECK(answer.at("findings").at(2) ==
        Json{{"topic", "gpu"}, {"level", "problem"}, {"text", "none"}, {"mend", "take another machine"}});
}

TEST_CASE("a probe that throws is a note, and sizes have units") {
  check_says(probed("disk", []() -> Findings { throw std::runtime_error("broken"); }), Level::note,
             "cannot be looked at: broken");
  CHECK(probed("disk", [] { return kFindings; }) == kFindings);
  CHECK(size_text(0) == "0 MiB");
  CHECK(size_text(uint64_t{512} << 20) == "512 MiB");
  CHECK(size_text(uint64_t{3} << 29) == "1.5 GiB");
}

TEST_CASE("hexad doctor asks everything, and its status says whether there is a problem") {
  const Ended run = toy::run({"doctor", "--json"});
  INFO(run.out << run.err);
  const Json answer = Json::parse(run.out);
  CHECK(run.code == (answer.at("problems") > 0 ? 1 : 0));
  CHECK(run.err == "");
  CHECK(answer.at("version") != "");
  std::vector<std::string> topics;
  size_t problems = 0;
  for (const Json& each : answer.at("findings")) {
    topics.push_back(each.at("topic"));
    problems += each.at("level") == "problem";
    CHECK((each.at("level") == "ok") == each.at("mend").get<std::string>().empty());
    CHECK_FALSE(contains(each.at("text"), "cannot be looked at"));
  }
  CHECK(answer.at("problems") == problems);
  for (const char* topic : {"hexad", "cpu", "memory", "shm", "disk", "gpu", "libtorch", "plugins", "limits", "ports",
                            "sandbox", "clock", "locale", "launcher"})
    CHECK_MESSAGE(std::ranges::find(topics, topic) != topics.end(), topic);
}

TEST_CASE("hexad doctor ends with 1 where something is wrong, and says what") {
  const toy::TempDir dir;
  dir.write("libbroken.hexad.json", "{");
  const Ended broken = under("HEXAD_PLUGIN_PATH='" + dir.path().string() + "' HF_TOKEN=hf_geheim123 $0 doctor --json");
  CHECK(broken.code == 1);
  const Json answer = Json::parse(broken.out);
  check_line(answer, "plugins", "problem", (dir / "libbroken.hexad.json").string() + ": not JSON");
  check_line(answer, "variable", "ok", "HEXAD_PLUGIN_PATH=" + dir.path().string());
  check_line(answer, "variable", "ok", "HF_TOKEN=***");
  CHECK_FALSE(contains(broken.out, "geheim"));
  const Ended few = under("ulimit -n 50; exec $0 doctor");
  CHECK(few.code == 1);
  CHECK_MESSAGE(contains(few.out, "problem  limits    open files 50, wanted 56 in each process of a run\n"), few.out);
  CHECK(contains(few.out, "mend: raise the hard limit"));
  const Ended nowhere = under("TMPDIR=/proc $0 doctor");
  CHECK(nowhere.code == 1);
  CHECK_MESSAGE(contains(nowhere.out, "the folder of temporary files /proc cannot be written"), nowhere.out);
}

TEST_CASE("a folder that has gone, and output that cannot be written, end hexad doctor with a word") {
  const toy::TempDir dir;
  const Ended gone = under("mkdir '" + (dir / "gone").string() + "'; cd '" + (dir / "gone").string() + "'; rmdir '" +
                           (dir / "gone").string() + "'; $0 doctor");
  CHECK_MESSAGE(contains(gone.out, "the current folder . cannot be written: No such file or directory"), gone.out);
  const Ended full = under("$0 doctor > /dev/full");
  CHECK(full.code == 2);
  CHECK_MESSAGE(contains(full.err, "standard output: cannot be written: No space left on device"), full.err);
}

TEST_CASE("colours are for a terminal that wants them") {
  if (std::system("command -v script > /dev/null") != 0) return test_report::skipped("there is no script(1)");
  const auto on_terminal = [](const std::string& variables) {
    return under("env -u NO_COLOR " + variables + " script -qec \"$0 doctor\" /dev/null < /dev/null").out;
  };
  CHECK(contains(on_terminal("TERM=xterm"), "\x1b[32mok"));
  CHECK_FALSE(contains(on_terminal("TERM=xterm NO_COLOR=1"), "\x1b["));
  CHECK(contains(on_terminal("TERM=xterm NO_COLOR="), "\x1b[32mok"));
  CHECK_FALSE(contains(on_terminal("TERM=dumb"), "\x1b["));
  CHECK_FALSE(contains(toy::run({"doctor"}).out, "\x1b["));
}
