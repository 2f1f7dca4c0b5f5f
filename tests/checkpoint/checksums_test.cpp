// What the disk does to a checkpoint is found, file by file; and which of several a run goes on from.
#include "core/checkpoint/checksums.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/sha256.hpp"
#include "tests/checkpoint/temp_folder.hpp"
#include "tests/support/said.hpp"

using namespace hexad;
using checkpoint::FileSums;
using checkpoint::Store;
using checkpoint::TrainingInfo;
using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

constexpr const char* kWeights = "policy/weights/model.safetensors";

std::string sha256(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

// Checkpoints of a run, as its saver makes them.
class Run {
 public:
  explicit Run(bool checksums = true) {
    config.checkpoint_dir = folder.path().string();
    config.keep_top_k.reset();
    config.save_period = 1;
    config.checksums = checksums;
  }
  void save(int64_t step) {
    Store store(config);
    const fs::path directory = store.begin(step);
    std::ofstream(directory / "policy/weights/model.safetensors") << "weights of " << step;
    std::ofstream(directory / "policy/weights/config.json") << "{}";
    std::ofstream(directory / "policy/optimizer/model.safetensors") << "moments of " << step;
    TrainingInfo info;
    info.total_steps = step;
    info.loader = {{"epoch", 1}};
    info.identity = {{"model", {{"hidden_size", 64}}}};
    info.metrics = {{"val:accuracy", 0.1}, {"train:reward", 1.0 / 3}, {"train:large", 1e300}, {"train:none", NAN}};
    info.files = checkpoint::sums_of(directory, config.checksums);
    store.commit(step, info, "grpo: {}\n");
  }
  fs::path step(int64_t number) const { return folder / fmt::format("step_{}", number); }
  // The step that it goes on from, or -1; `told` gets the lines.
  int64_t resumed() {
    told.clear();
    const auto found = Store(config).newest_intact([&](const std::string& line) { told.push_back(line); });
    return found ? found->step : -1;
  }
  std::string error() {
    try {
      resumed();
    } catch (const Error& error) {
      return error.what();
    }
    return "(no error)";
  }

  TempFolder folder;
  config::CheckpointingConfig config;
  Lines told;
};

void flip(const fs::path& file, size_t at) {
  std::string bytes = read_file(file);
  bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("sizes and checksums are those of the files, and files that are as they were are no damage") {
  TempFolder folder;
  std::string large(3 << 20, 'x');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 251);
  folder.write("a/large", large);
  folder.write("a/b/small", "abc");
  folder.write("empty", "");
  const FileSums sums = checkpoint::sums_of(folder.path(), true);
  REQUIRE(sums.size() == 3);
  CHECK(sums.at("a/large").sha256 == sha256(large));
  CHECK(sums.at("a/large").bytes == large.size());
  CHECK(sums.at("a/b/small").sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sums.at("empty").bytes == 0);
  CHECK(checkpoint::has_checksums(sums));
  CHECK(checkpoint::damage(folder.path(), sums).empty());
  const FileSums again = checkpoint::sums_from(checkpoint::to_json(sums));
  CHECK(checkpoint::to_json(again) == checkpoint::to_json(sums));
  const FileSums sizes = checkpoint::sums_of(folder.path(), false);
  CHECK_FALSE(checkpoint::has_checksums(sizes));
  CHECK(sizes.at("a/large").bytes == large.size());
  folder.write("a/more", "nobody asked for it");
  CHECK(checkpoint::damage(folder.path(), sums).empty());
}

TEST_CASE("each kind of damage is named with the file, what was saved and what there is") {
  TempFolder folder;
  for (const char* name : {"flipped", "cut", "longer", "gone", "other", "folder", "good"})
    folder.write(name, std::string(100, 'a'));
  const FileSums sums = checkpoint::sums_of(folder.path(), true);
  flip(folder / "flipped", 50);
  fs::resize_file(folder / "cut", 99);
  fs::resize_file(folder / "longer", 101);
  fs::remove(folder / "gone");
  folder.write("other", std::string(100, '\0'));
  fs::remove(folder / "folder");
  fs::create_directory(folder / "folder");
  const std::string flipped = std::string(50, 'a') + 'A' + std::string(49, 'a');
  const Lines lines = checkpoint::damage(folder.path(), sums);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "cut has 99 bytes, 100 were saved");
  CHECK(lines[1] == fmt::format("flipped has sha256 {}, saved was {}", sha256(flipped), sha256(std::string(100, 'a'))));
  SAYS(lines[2], "folder cannot be read (");
  CHECK(lines[3] == "gone is missing");
  CHECK(lines[4] == "longer has 101 bytes, 100 were saved");
  SAYS(lines[5], "other has sha256 ");
}

TEST_CASE("training_info.json has the checksum of each file, and its own") {
  Run run;
  run.save(3);
  const Json info = Json::parse(read_file(run.step(3) / "training_info.json"));
  const Json& files = info.at("files");
  CHECK(files.size() == 4);
  for (const auto& [path, sum] : files.items()) {
    CHECK(sum.at("sha256") == sha256(read_file(run.step(3) / path)));
    CHECK(sum.at("bytes") == fs::file_size(run.step(3) / path));
  }
  CHECK(files.contains("config.yaml"));
  CHECK(info.at("sha256").get<std::string>().size() == 64);
  CHECK(run.resumed() == 3);
  CHECK(run.told.empty());
  CHECK(checkpoint::inspect(run.step(3)).damage.empty());
  CHECK(checkpoint::read_info(run.step(3)).metrics.at("train:reward") == 1.0 / 3);
}

TEST_CASE("a newest checkpoint that is damaged is named and set aside, and the newest intact one taken") {
  Run run;
  for (const int64_t step : {2, 4, 6}) run.save(step);
  const fs::path weights = run.step(6) / kWeights;
  std::string what;
  SUBCASE("a bit of the weights") {
    flip(weights, 3);
    what = std::string(kWeights) + " has sha256 ";
  }
  SUBCASE("weights cut short") {
    fs::resize_file(weights, 5);
    what = std::string(kWeights) + " has 5 bytes, 12 were saved";
  }
  SUBCASE("weights of another step") {
    fs::copy_file(run.step(4) / kWeights, weights, fs::copy_options::overwrite_existing);
    what = std::string(kWeights) + " has sha256 ";
  }
  SUBCASE("no optimizer any more") {
    fs::remove_all(run.step(6) / "policy/optimizer");
    what = "policy/optimizer/model.safetensors is missing";
  }
  SUBCASE("a digit of the position") {
    std::string text = read_file(run.step(6) / "training_info.json");
    text.replace(text.find("\"total_steps\": 6"), 16, "\"total_steps\": 7");
    std::ofstream(run.step(6) / "training_info.json") << text;
    what = "training_info.json is damaged: its content has another sha256 than it says";
  }
  SUBCASE("the name under which the checksums stand") {
    std::string text = read_file(run.step(6) / "training_info.json");
    text.replace(text.find("\"files\""), 7, "\"fileS\"");
    std::ofstream(run.step(6) / "training_info.json") << text;
    what = "training_info.json is damaged";
  }
  SUBCASE("training_info.json of another step") {
    fs::copy_file(run.step(4) / "training_info.json", run.step(6) / "training_info.json",
                  fs::copy_options::overwrite_existing);
    what = "training_info.json is damaged: it is of step 4: was the folder copied or renamed?";
  }
  SUBCASE("training_info.json cut short") {
    fs::resize_file(run.step(6) / "training_info.json", 20);
    what = "training_info.json is damaged";
  }
  SUBCASE("no training_info.json") {
    fs::remove(run.step(6) / "training_info.json");
    what = "training_info.json: cannot be opened: No such file or directory";
  }
  SUBCASE("a pipe under the name of training_info.json") {
    fs::remove(run.step(6) / "training_info.json");
    REQUIRE(::mkfifo((run.step(6) / "training_info.json").c_str(), 0600) == 0);
    what = "training_info.json: not a regular file: ";
  }
  SUBCASE("weights beside those that were saved") {
    std::ofstream(run.step(6) / "policy/weights/model.safetensors.index.json") << "{}";
    what = "policy/weights/model.safetensors.index.json was not saved with it: move it away";
  }
  SUBCASE("a number that is none") {  // no disk's fault: with its own checksum mended
    Json info = Json::parse(read_file(run.step(6) / "training_info.json"));
    info["total_steps"] = 1e30;
    info.erase("sha256");
    info["sha256"] = sha256(json_text(info));
    std::ofstream(run.step(6) / "training_info.json") << info;
    what = "training_info.json is damaged: total_steps is 1e+30, wanted a whole number, 0 or more";
  }
  SUBCASE("no bytes that can be read") {
    fs::remove(weights);
    REQUIRE(::mkfifo(weights.c_str(), 0600) == 0);
    what = std::string(kWeights) + " cannot be read (";
  }
  SUBCASE("the configuration") {
    flip(run.step(6) / "config.yaml", 0);
    what = "config.yaml has sha256 ";
  }
  run.config.resume_from_older = false;
  const std::string refusal = run.error();
  SAYS(refusal, fmt::format("checkpointing.resume_from_older is false, and the newest checkpoint {} is damaged: ",
                            run.step(6).string()));
  SAYS(refusal, what);
  SAYS(refusal, fmt::format("set the key to true: the one before it is {}", run.step(4).string()));
  CHECK(fs::exists(run.step(6)));
  run.config.resume_from_older = true;
  CHECK(run.resumed() == 4);
  REQUIRE(run.told.size() == 1);
  SAYS(run.told[0], fmt::format("the checkpoint {} is damaged: ", run.step(6).string()));
  SAYS(run.told[0], what);
  SAYS(run.told[0], fmt::format("It is kept as {}; {} is the newest that is intact",
                                (run.folder / "damaged_step_6").string(), run.step(4).string()));
  CHECK(fs::exists(run.folder / "damaged_step_6"));
  CHECK_FALSE(fs::exists(run.step(6)));
  CHECK(run.resumed() == 4);
  CHECK(run.told.empty());
}

TEST_CASE("the copy of an older step under a higher number is not where a run goes on") {
  Run run;
  for (const int64_t step : {2, 4}) run.save(step);
  fs::copy(run.step(2), run.step(9), fs::copy_options::recursive);
  const Lines damage = checkpoint::inspect(run.step(9) / "").damage;
  REQUIRE(damage.size() == 1);
  SAYS(damage[0], "step_9/training_info.json is damaged: it is of step 2: was the folder copied or renamed?");
  CHECK(run.resumed() == 4);
  CHECK(fs::exists(run.folder / "damaged_step_9"));
  CHECK(checkpoint::inspect(run.folder / "damaged_step_9").damage.empty());
}

TEST_CASE("several that are damaged go aside, under names that are free") {
  Run run;
  for (const int64_t step : {2, 4, 6}) run.save(step);
  run.folder.write("damaged_step_6/mine", "precious");
  flip(run.step(6) / kWeights, 0);
  flip(run.step(4) / kWeights, 0);
  CHECK(run.resumed() == 2);
  CHECK(run.told.size() == 2);
  CHECK(names_in(run.folder.path()) == Lines{".lock", "damaged_step_4", "damaged_step_6", "damaged_step_6.2",
                                             "latest_checkpoint_status.json", "step_2"});
  CHECK(read_file(run.folder / "damaged_step_6/mine") == "precious");
}

TEST_CASE("where none is intact the run does not begin anew: each is named, and nothing is moved") {
  Run run;
  for (const int64_t step : {2, 4}) run.save(step), flip(run.step(step) / kWeights, 0);
  const std::string error = run.error();
  SAYS(error, "checkpointing.checkpoint_dir has no checkpoint that is intact:");
  for (const int64_t step : {2, 4})
    SAYS(error, fmt::format("\n  {}: {} has sha256 ", run.step(step).string(), kWeights));
  SAYS(error, "Restore one from a copy, or give this run a checkpoint_dir of its own");
  for (const int64_t step : {2, 4}) CHECK(fs::exists(run.step(step)));
}

TEST_CASE("without checksums sizes alone are compared, and one of an older version is taken as it is") {
  Run run(/*checksums=*/false);
  for (const int64_t step : {2, 4}) run.save(step);
  const Json info = Json::parse(read_file(run.step(4) / "training_info.json"));
  CHECK_FALSE(info.contains("sha256"));
  CHECK(info.at("files").at(kWeights) == Json{{"bytes", 12}});
  flip(run.step(4) / kWeights, 0);
  CHECK(run.resumed() == 4);
  fs::resize_file(run.step(4) / kWeights, 3);
  CHECK(run.resumed() == 2);
  Json older = Json::parse(read_file(run.step(2) / "training_info.json"));
  older.erase("files");
  std::ofstream(run.step(2) / "training_info.json") << older;
  fs::resize_file(run.step(2) / kWeights, 3);
  CHECK(run.resumed() == 2);
  CHECK_FALSE(checkpoint::has_checksums(checkpoint::read_info(run.step(2)).files));
}

TEST_CASE("an older checkpoint whose training_info.json is damaged ranks last, and ends no save") {
  Run run;
  run.config.keep_top_k = 2;
  for (const int64_t step : {1, 2}) run.save(step);
  std::ofstream(run.step(1) / "training_info.json") << "{";
  run.save(3);
  run.save(4);
  CHECK_FALSE(fs::exists(run.step(1)));
  CHECK(fs::exists(run.step(3)));
  CHECK(fs::exists(run.step(4)));
}

TEST_CASE("a model of a checkpoint is refused where it is damaged; its optimizer does not matter") {
  Run run;
  run.save(2);
  const fs::path model = run.step(2) / "policy/weights";
  flip(run.step(2) / "policy/optimizer/model.safetensors", 0);
  checkpoint::require_intact_model(model);
  checkpoint::require_intact_model(run.step(2));
  flip(model / "model.safetensors", 0);
  for (const fs::path& directory : {model, run.step(2)})
    CHECK_THROWS_WITH_AS(
        checkpoint::require_intact_model(directory),
        doctest::Contains(
            fmt::format("the checkpoint {} is damaged: {} has sha256 ", run.step(2).string(), kWeights).c_str()),
        Error);
  std::ofstream(run.step(2) / "training_info.json") << "{\"step\": 2}";  // of another system: nothing is known
  checkpoint::require_intact_model(model);
  std::ofstream(run.step(2) / "training_info.json") << "{";
  CHECK_THROWS_WITH_AS(checkpoint::require_intact_model(model), doctest::Contains("training_info.json is damaged: "),
                       Error);
  checkpoint::require_intact_model(run.folder.path());  // no checkpoint of a run
  checkpoint::require_intact_model(run.folder / "nowhere");
}

TEST_CASE("a folder of checkpoints that cannot be listed is an error, and not an empty one") {
  TempFolder folder;
  CHECK_THROWS_WITH_AS(checkpoint::list_steps(folder.write("file", "")),
                       doctest::Contains("file: cannot be listed: Not a directory"), Error);
}
