// Names of the Hub where commands want a model or a data set: from the cache alone, never from the network.
#include <doctest/doctest.h>

#include "tests/lib/tensorfile/three_tensors.hpp"
#include "tests/support/hub_cache.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

using test_support::HubCache;
using test_support::kCommit;
using toy::Ended;
namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

const std::string kModel = "models--owner--tiny", kRows = "datasets--owner--rows";

// The quickstart's model with some weights, in the cache as owner/tiny, and a run that does not know of it.
struct Cached {
  Cached() {
    for (const auto& entry : fs::directory_iterator(toy::source_dir() / "configs/quickstart_model"))
      cache.file(kModel, entry.path().filename(), toy::read_text(entry.path()));
    hexad::tensorfile::SafetensorsWriter writer(dir / "three.safetensors", kThree);
    write_three(writer);
    cache.file(kModel, "model.safetensors", toy::read_text(dir / "three.safetensors"));
    cache.ref(kModel, "main", kCommit);
  }
  Ended run(Arguments command, const Arguments& overrides) const {
    command.push_back(config);
    command.insert(command.end(), overrides.begin(), overrides.end());
    return toy::run(command);
  }
  Ended train(const Arguments& overrides) const { return run({"train"}, overrides); }

  HubCache cache;
  toy::TempDir dir;
  std::string config = dir.write("toy.yaml", toy::config_text(dir.path())).string();
  std::string model = cache.snapshot(kModel).string();
};

const std::string kTiny = "policy.model_name=owner/tiny", kOneStep = "grpo.max_num_steps=1";

}  // namespace

TEST_CASE("a run, its check and its tokenizer take the model from the cache") {
  const Cached cached;
  const Ended ended = cached.train({kTiny, kOneStep, "checkpointing.save_period=1"});
  CHECK_MESSAGE(ended.code == 0, ended.err);
  // The checkpoint has the tokenizer's bytes, and no links into the cache.
  const fs::path kept = cached.dir / "checkpoints/step_1/policy/tokenizer/tokenizer.json";
  CHECK(fs::is_regular_file(fs::symlink_status(kept)));
  CHECK(toy::read_text(kept) == toy::read_text(toy::source_dir() / "configs/quickstart_model/tokenizer.json"));
  const Ended other = cached.train(
      {kOneStep, "++policy.tokenizer.name=owner/tiny@" + kCommit.substr(0, 7), "checkpointing.enabled=false"});
  CHECK_MESSAGE(other.code == 0, other.err);
  SAYS(cached.run({"config", "check"}, {kTiny}).out, "valid");
}

TEST_CASE("what is missing of a model is said with the line that fetches it") {
  const Cached cached;
  const std::string folder = cached.cache.dir.path().string();
  SAYS(cached.train({"policy.model_name=owner/none@v1"}).err,
       "policy.model_name: no such directory: 'owner/none@v1'. Wanted: the path of a Hugging Face model directory; the "
       "Hub's cache, " +
           folder + ", has no such model either. Fetch it: hf download owner/none --revision v1");
  SAYS(cached.train({"policy.model_name=gpt2"}).err, "Fetch it: hf download gpt2\n");
  SAYS(cached.train({"policy.model_name=owner/tiny@v1"}).err,
       "policy.model_name: the revision 'v1' of owner/tiny is not in the Hub's cache; ");
  SAYS(cached.train({"policy.model_name=owner/tiny@refs/pr/1"}).err, "'refs/pr/1' is no revision of owner/tiny");
  SAYS(
      cached.train({"++policy.tokenizer.name=owner/none"}).err,
      "policy.tokenizer.name: no directory 'owner/none'. Wanted: a directory with tokenizer.json; leave the key out to "
      "use the model's; the Hub's cache, " +
          folder + ", has no such model either. Fetch it: hf download owner/none");
  fs::remove(fs::path(cached.model) / "tokenizer.json");
  SAYS(cached.train({kTiny}).err, "policy.tokenizer.name: " + cached.model +
                                      " is there in part: tokenizer.json is missing. Fetch the rest: hf download "
                                      "owner/tiny");
  fs::remove(fs::path(cached.model) / "model.safetensors");
  SAYS(cached.train({kTiny}).err,
       "policy.model_name: " + cached.model + " is there in part: model.safetensors is missing. Fetch the rest: ");
  SAYS(cached.train({kTiny, "policy.random_init_seed=1"}).err, "tokenizer.json is missing");  // the weights are made
}

TEST_CASE("a folder of the name wins") {
  const Cached cached;
  fs::create_directories(cached.dir / "work/owner/tiny");
  const fs::path before = fs::current_path();
  fs::current_path(cached.dir / "work");
  const Ended ended = cached.train({kTiny});
  fs::current_path(before);
  SAYS(ended.err, "policy.model_name: owner/tiny has no config.json. Wanted: a Hugging Face model directory");
}

TEST_CASE("commands for a model take names, too") {
  const Cached cached;
  const std::string lines = cached.dir.write("in.jsonl", R"({"text": "ab"})"
                                                         "\n"),
                    out = (cached.dir / "out").string();
  const Ended tokens = toy::run({"tokenize", "owner/tiny", "--input", lines});
  CHECK(tokens.code == 0);
  CHECK(tokens.out == toy::run({"tokenize", cached.model, "--input", lines}).out);
  const Ended converted = toy::run({"convert", "owner/tiny", out});
  CHECK_MESSAGE(converted.code == 0, converted.err);
  check_three(hexad::tensorfile::Safetensors::open(out));
  CHECK(fs::is_regular_file(fs::symlink_status(fs::path(out) / "tokenizer.json")));
  const Arguments plugins = {"++plugins.paths=[" + toy::plugins().string() + "]", "policy.backend=toy_backend",
                             "policy.generation.backend=toy_generator"};
  const auto with_plugins = [&](Arguments command) {
    command.insert(command.end(), plugins.begin(), plugins.end());
    return command;
  };
  for (const Arguments& command : {Arguments{"tokenize", "owner/none", "--input", lines},
                                   {"convert", "owner/none", out},
                                   with_plugins({"score", "owner/none", "--input", lines}),
                                   with_plugins({"generate", "owner/none", "--prompt", "a"})}) {
    CAPTURE(command.front());
    const Ended ended = toy::run(command);
    CHECK(ended.code != 0);
    SAYS(ended.err, "has no such model either. Fetch it: hf download owner/none\n");
  }
  fs::remove(fs::path(cached.model) / "model.safetensors");
  SAYS(toy::run({"convert", "owner/tiny", out + "2"}).err, "owner/tiny: " + cached.model + " is there in part: ");
  SAYS(toy::run(with_plugins({"score", "owner/tiny", "--input", lines})).err,
       "model.safetensors is missing. Fetch the rest: ");
  fs::remove(fs::path(cached.model) / "tokenizer.json");
  SAYS(toy::run({"tokenize", "owner/tiny", "--input", lines}).err,
       "MODEL_DIR: " + cached.model + " is there in part: tokenizer.json is missing");
}

TEST_CASE("a data set from the cache, by data_path or by its name") {
  Cached cached;
  const std::string rows = R"({"input": "a", "output": "b"})"
                           "\n";
  cached.cache.files(kRows, {{"README.md", "x"}, {"data/train-00000-of-00001.jsonl", rows + rows}});
  const auto train = [&](const std::string& data) {
    return cached.train({"~data.train", "+data.train={env_name: exact_answer, " + data + "}", kOneStep,
                         "grpo.num_prompts_per_step=1", "policy.train_global_batch_size=8",
                         "policy.train_micro_batch_size=8", "policy.logprob_batch_size=8",
                         "checkpointing.enabled=false"});
  };
  for (const char* data : {"dataset_name: ResponseDataset, data_path: owner/rows", "dataset_name: owner/rows@main"}) {
    const Ended ended = train(data);
    CHECK_MESSAGE(ended.code == 0, ended.err);
  }
  SAYS(train("dataset_name: owner/none").err, "Fetch it: hf download owner/none --repo-type dataset");
  cached.cache.dir.write(kRows + "/blobs/1.incomplete", "");
  SAYS(train("dataset_name: owner/rows").err,
       "dataset_name: " + cached.cache.snapshot(kRows).string() + " is there in part: a download has not ended (");
}
