// Checkpoints that a disk has damaged: what a run makes of them, and what the commands say.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using namespace toy::names;
namespace fs = toy::fs;

namespace {

constexpr const char* kWeights = "policy/weights/toy.bin";

fs::path step(const TempDir& dir, int number) { return dir / fmt::format("checkpoints/step_{}", number); }

void flip(const fs::path& file) {
  std::string bytes = toy::read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

Ended trained(const TempDir& dir, std::vector<std::string> overrides = {}) {
  overrides.push_back("checkpointing.keep_top_k=null");
  return toy::run(toy::train(dir, std::move(overrides)));
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run goes on from the newest intact checkpoint, on other ranks too, unless a key forbids it") {
  const TempDir dir;
  REQUIRE(trained(dir).code == 0);
  const std::string good = toy::weights(dir, 6);
  flip(step(dir, 6) / kWeights);

  const Ended forbidden = trained(dir, {"grpo.max_num_steps=7", "++checkpointing.resume_from_older=false"});
  CHECK(forbidden.code == 2);
  CHECK_MESSAGE(contains(forbidden.err, "checkpointing.resume_from_older is false, and the newest checkpoint " +
                                            step(dir, 6).string() + " is damaged: " + kWeights + " has sha256 "),
                forbidden.err);
  CHECK_MESSAGE(contains(forbidden.err, "the one before it is " + step(dir, 4).string()), forbidden.err);

  const Ended run = trained(dir, {"grpo.max_num_steps=6", "cluster.gpus_per_node=2"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(
      contains(run.err, fmt::format("the checkpoint {} is damaged: {} has sha256 ", step(dir, 6).string(), kWeights)));
  CHECK(contains(run.err, fmt::format("It is kept as {}; {} is the newest that is intact",
                                      (dir / "checkpoints/damaged_step_6").string(), step(dir, 4).string())));
  CHECK(contains(run.err, fmt::format("resumed from {} (step 4)", step(dir, 4).string())));
  CHECK_FALSE(contains(run.err, "has no checksums"));
  CHECK(fs::exists(dir / "checkpoints/damaged_step_6" / kWeights));
  CHECK(toy::weights(dir, 6).size() == good.size());

  for (const int number : {2, 4, 6}) flip(step(dir, number) / kWeights);
  const Ended none = trained(dir, {"grpo.max_num_steps=7"});
  CHECK(none.code == 2);
  CHECK_MESSAGE(contains(none.err, "checkpointing.checkpoint_dir has no checkpoint that is intact:"), none.err);
  CHECK(fs::exists(step(dir, 6)));
}

TEST_CASE("checkpoints without checksums resume with a line that says so; one that cannot be loaded names the next") {
  const TempDir dir;
  REQUIRE(trained(dir, {"++checkpointing.checksums=false"}).code == 0);
  const Ended run = trained(dir, {"grpo.max_num_steps=7"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.err, fmt::format("resumed from {} (step 6)", step(dir, 6).string())));
  CHECK(contains(run.err,
                 "note: that checkpoint has no checksums (checkpointing.checksums is false, or an older "
                 "version saved it)"));
  CHECK(contains(toy::run({"checkpoint", "verify", step(dir, 6).string()}).out, "step_6: no checksums\n"));

  // As an older version left it: nothing is known of its files.
  Json info = Json::parse(toy::read_text(step(dir, 7) / "training_info.json"));
  info.erase("files");
  info.erase("sha256");
  std::ofstream(step(dir, 7) / "training_info.json") << info;
  fs::resize_file(step(dir, 7) / kWeights, 3);
  Json lost = info;
  lost["loader"].erase("position");
  std::ofstream(step(dir, 7) / "training_info.json") << lost;
  const Ended nowhere = trained(dir, {"grpo.max_num_steps=8"});
  CHECK(nowhere.code == 2);
  CHECK_MESSAGE(contains(nowhere.err,
                         "step_7/training_info.json is damaged: loader: position is missing, wanted a "
                         "whole number, 0 or more"),
                nowhere.err);
  std::ofstream(step(dir, 7) / "training_info.json") << info;
  const Ended cut = trained(dir, {"grpo.max_num_steps=8"});
  CHECK(cut.code != 0);
  CHECK_MESSAGE(contains(cut.err, fmt::format("The checkpoint {} has no checksums. If it is damaged, move it away: the "
                                              "one before it is {}",
                                              step(dir, 7).string(), step(dir, 6).string())),
                cut.err);
}

TEST_CASE("checkpoint verify and list say what is there, one by one and as JSON") {
  const TempDir dir;
  REQUIRE(trained(dir).code == 0);
  const std::string folder = (dir / "checkpoints").string();
  const Ended good = toy::run({"checkpoint", "verify", folder});
  CHECK(good.code == 0);
  CHECK(good.out == fmt::format("{0}/step_2: intact\n{0}/step_4: intact\n{0}/step_6: intact\n", folder));
  const Json list = Json::parse(toy::run({"checkpoint", "list", "--json", folder}).out);
  REQUIRE(list.size() == 3);
  CHECK(list[1].at("checkpoint") == folder + "/step_4");
  CHECK(list[1].at("step") == 4);
  CHECK(list[1].at("consumed_samples") == 32);
  CHECK(list[1].at("checksums") == true);
  CHECK(list[1].at("bytes") > fs::file_size(step(dir, 4) / kWeights));
  CHECK(list[1].at("metrics").contains("train:reward"));
  const Ended text = toy::run({"checkpoint", "list", step(dir, 4).string()});
  CHECK_MESSAGE(contains(text.out, folder + "/step_4: step 4, epoch "), text.out);
  CHECK_MESSAGE(contains(text.out, " MB, checksums\n"), text.out);

  flip(step(dir, 4) / kWeights);
  std::ofstream(step(dir, 2) / "training_info.json") << "{";
  const Ended bad = toy::run({"checkpoint", "verify", folder});
  CHECK(bad.code == 2);
  CHECK_MESSAGE(contains(bad.out, fmt::format("{0}/step_4: damaged\n  {1} has sha256 ", folder, kWeights)), bad.out);
  CHECK_MESSAGE(contains(bad.out, folder + "/step_6: intact\n"), bad.out);
  const Ended json = toy::run({"checkpoint", "verify", "--json", folder});
  CHECK(json.code == 2);
  CHECK(Json::parse(json.out).at(0).at("state") == "damaged");
  CHECK(Json::parse(json.out).at(1).at("damage").size() == 1);
  CHECK(contains(toy::run({"checkpoint", "list", folder}).out, "step_2/training_info.json is damaged: "));

  fs::remove(step(dir, 4) / "training_info.json");  // of one that is named it is damage, too
  const Ended named = toy::run({"checkpoint", "verify", step(dir, 4).string()});
  CHECK(named.code == 2);
  CHECK_MESSAGE(contains(named.out, "step_4: damaged\n  "), named.out);

  for (const auto& [path, says] :
       {std::pair{dir / "nowhere", "no such directory"}, {dir / "logs", "has no checkpoints"}}) {
    const Ended none = toy::run({"checkpoint", "verify", path.string()});
    CHECK(none.code == 2);
    CHECK_MESSAGE(contains(none.err, fmt::format("{}: {}. Wanted: a checkpoint_dir of a run, or a step_N in it",
                                                 path.string(), says)),
                  none.err);
  }
}

TEST_SUITE_END();
