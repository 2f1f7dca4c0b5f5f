// What the template of a reward in Python keeps from the code that it tests.
#include "tests/environment/scripted_program.hpp"
#include "tests/support/toy/program.hpp"

using namespace scripted;
using plugin_test::contains;

namespace {

constexpr const char* kNosy = R"PY(
import os, subprocess
import my_reward

def score(request):
    print("by print")
    os.write(1, b"by descriptor 1\n")
    subprocess.run(["echo", "by a child"], check=True)
    assert subprocess.run(["cat"], check=True, stdout=subprocess.PIPE).stdout == b""
    assert input_is_over()
    return 0.25

def input_is_over():
    try:
        input()
    except EOFError:
        return True

my_reward.score = score
my_reward.main()
)PY";

}  // namespace

TEST_CASE("reward_python: what score() and its children write and read is no answer and no request") {
  const toy::TempDir dir;
  const auto folder = toy::source_dir() / "sdk/template/reward_python";
  dir.write("my_reward.py", toy::read_text(folder / "@NAME@.py.in"));
  const auto nosy = dir.write("nosy.py", kNosy);
  const std::string requests = toy::read_text(folder / "test.jsonl.in");
  const toy::Ended ended = toy::Program({"python3", nosy.string()}, {}, requests).wait();
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  std::string wanted;
  for (int id = 0; id < 5; ++id) wanted += Json({{"id", id}, {"reward", 0.25}}).dump() + "\n";
  std::string got = ended.out;
  std::erase(got, ' ');
  CHECK(got == wanted);
  for (const char* said : {"by print", "by descriptor 1", "by a child"}) CHECK_MESSAGE(contains(ended.err, said), said);

  Script script;  // a child that reads waits for no request that has not come
  const auto environment = script.make({{"command", {"python3", nosy.string()}}, {"retries", 0}, {"timeout_s", 60}});
  const Scores scores = score(*environment, {"a", "b", "c", "d"});
  CHECK(scores.rewards == std::vector<float>(4, 0.25f));
  CHECK(scores.why_invalid == "");
}
