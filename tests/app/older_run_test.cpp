// A run of an older version: its checkpoint is gone on from, its log is reported. tests/app/older_run holds what the
// version 0.1 wrote before checkpoints had checksums, in two steps of the toy; every later version has to read it.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using plugin_test::contains;
using toy::Ended;
using toy::TempDir;

TEST_CASE("a checkpoint of an older version is gone on from, and says once that it has no checksums") {
  const TempDir undisturbed, dir;
  REQUIRE(toy::run(toy::train(undisturbed)).code == 0);
  toy::fs::copy(toy::source_dir() / "tests/app/older_run/checkpoints", dir / "checkpoints",
                toy::fs::copy_options::recursive);
  const Ended ended = toy::run(toy::train(dir));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(contains(ended.err, "resumed from " + (dir / "checkpoints/step_2").string() + " (step 2)"));
  const size_t note = ended.err.find("has no checksums");
  REQUIRE(note != std::string::npos);
  CHECK(ended.err.find("has no checksums", note + 1) == std::string::npos);
  CHECK(toy::lines(dir / "logs/exp_001/metrics.jsonl").size() == 4);
  // What it had learned, and its place in the data: the same as without a pause.
  CHECK(toy::weights(dir, 6) == toy::weights(undisturbed, 6));
}

TEST_CASE("the log of an older version is reported") {
  const TempDir dir;
  const auto log = dir / "log";
  toy::fs::copy(toy::source_dir() / "tests/app/older_run/logs/exp_001", log, toy::fs::copy_options::recursive);
  const Ended page = toy::run({"report", log.string()});
  INFO(page.err);
  CHECK(page.code == 0);
  CHECK(contains(toy::read_text(log / "report.html"), "train/reward"));
  const Ended json = toy::run({"report", log.string(), "--json"});
  REQUIRE(json.code == 0);
  const auto report = plugin_test::Json::parse(json.out);
  CHECK_MESSAGE(contains(json.out, "\"train/reward\""), json.out);
  CHECK(report.is_object());
  const Ended checkpoints =
      toy::run({"checkpoint", "list", (toy::source_dir() / "tests/app/older_run/checkpoints").string()});
  CHECK(checkpoints.code == 0);
  CHECK(contains(checkpoints.out, "no sizes and no checksums"));
}
