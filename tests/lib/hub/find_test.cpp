// Names of the Hub as folders of the cache, and snapshots that are there in part.
#include "lib/hub/hub.hpp"

#include "lib/hub/numbered.hpp"
#include "tests/support/hub_cache.hpp"
#include "tests/support/said.hpp"

using namespace hexad;
using hub::Use;
using plugin_test::error_of;
using test_support::HubCache;
using test_support::kCommit;
using test_support::kOther;
using test_support::Variable;
namespace fs = std::filesystem;

namespace {

const std::string kModel = "models--owner--name", kData = "datasets--owner--rows";

// What is said of the snapshot of owner/name, or of the data set owner/rows; "whole" where nothing is wrong.
std::string answer(Use use) {
  bool found = false;
  const std::string error =
      error_of([&] { found = hub::find(use, "key", use == Use::data ? "owner/rows" : "owner/name").has_value(); });
  return found ? "whole" : error;
}

std::string in_part(const HubCache& cache, const std::string& what) {
  return "key: " + cache.snapshot(kModel).string() + " is there in part: " + what +
         ". Fetch the rest: hf download owner/name";
}

const char* const kIndexText =
    R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})";

}  // namespace

TEST_CASE("a name that is in the cache is the folder of its snapshot") {
  HubCache cache;
  cache.files(kModel, {{"config.json", "{}"}, {"model.safetensors", "x"}, {"tokenizer.json", "{}"}});
  cache.files("models--gpt2", {{"config.json", "{}"}}, kOther);
  for (const Use use : {Use::model, Use::weights, Use::tokenizer})
    CHECK(hub::find(use, "key", "owner/name") == cache.snapshot(kModel));
  CHECK(hub::find(Use::model, "key", "owner/name@" + kCommit.substr(0, 6)) == cache.snapshot(kModel));
  CHECK(hub::find(Use::model, "key", "gpt2") == cache.snapshot("models--gpt2", kOther));
  CHECK(hub::model_folder("gpt2") == cache.snapshot("models--gpt2", kOther));
  for (const char* name : {"owner/other", "owner/rows", "/nowhere", "../models--gpt2", "models--gpt2"})
    CHECK_FALSE(hub::find(Use::model, "key", name));
  CHECK_FALSE(hub::find(Use::data, "key", "gpt2"));  // a model is no data set
  // Without a cache nothing is found.
  const Variable none("HF_HUB_CACHE", (cache.dir / "nowhere").string());
  CHECK_FALSE(hub::find(Use::model, "key", "gpt2"));
}

TEST_CASE("who only looks sees the folder of the name first, and no errors") {
  HubCache cache;
  cache.files("models--lib", {{"config.json", "{}"}});
  CHECK(hub::find(Use::model, "key", "lib"));
  const fs::path before = fs::current_path();
  fs::create_directories(cache.dir / "work/lib");
  fs::current_path(cache.dir / "work");
  CHECK(hub::model_folder("lib") == "lib");
  fs::current_path(before);
  CHECK(hub::model_folder("owner/none") == "owner/none");
  CHECK(hub::model_folder(std::string(300, 'x')) == std::string(300, 'x'));
  cache.ref("models--lib", "main", "damaged");
  CHECK(error_of([] { hub::find(Use::model, "key", "lib"); }).starts_with("key: "));
  fs::current_path(cache.dir.path());
  CHECK(hub::model_folder("lib") == "lib");
  fs::current_path(before);
}

TEST_CASE("shards that the index names and that are not there, and an index that is not there") {
  HubCache cache;
  cache.files(kModel, {{"config.json", "{}"}, {"model.safetensors.index.json", kIndexText}});
  const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
  CHECK(answer(Use::model) == in_part(cache, first + " is missing"));
  cache.file(kModel, first, "x");
  CHECK(answer(Use::model) == in_part(cache, second + " is missing"));
  const auto blob = cache.dir.write(kModel + "/blobs/77.incomplete", "x");
  CHECK(answer(Use::model) ==
        in_part(cache, second + " is missing, and a download has not ended (" + blob.string() + ")"));
  cache.file(kModel, second, "x");
  CHECK(answer(Use::weights) == "whole");  // what has not ended is no file of this snapshot
  fs::remove(cache.snapshot(kModel) / "model.safetensors.index.json");
  CHECK(answer(Use::model) == in_part(cache, "model.safetensors.index.json is missing, and a download has not ended (" +
                                                 blob.string() + ")"));
  // An index that cannot be read is for who reads the weights.
  for (const char* text : {"{", "[]", R"({"weight_map": 7})", R"({"weight_map": {"a": 1, "b": "../../x", "c": ""}})"}) {
    cache.file(kModel, "model.safetensors.index.json", text);
    CHECK(answer(Use::weights) == "whole");
    fs::remove(cache.snapshot(kModel) / "model.safetensors.index.json");
  }
}

TEST_CASE("a snapshot without weights, without config.json or without a tokenizer") {
  HubCache cache;
  cache.files(kModel, {{"README.md", "x"}});
  CHECK(answer(Use::model) == in_part(cache, "config.json is missing"));
  CHECK(answer(Use::tokenizer) == in_part(cache, "tokenizer.json is missing"));
  cache.file(kModel, "config.json", "{}");
  CHECK(answer(Use::model) == "whole");
  CHECK(answer(Use::weights) == in_part(cache, "model.safetensors is missing"));
  cache.file(kModel, "tokenizer.json", "{}");
  CHECK(answer(Use::tokenizer) == "whole");
  cache.file(kModel, "pytorch_model.bin", "x");  // whoever reads weights says what is to be done with these
  CHECK(answer(Use::weights) == "whole");
  cache.files("models--owner--gguf", {{"model.Q4_0.gguf", "x"}});
  CHECK(hub::find(Use::weights, "key", "owner/gguf"));
  cache.files("models--owner--sentencepiece", {{"tokenizer.model", "x"}});
  CHECK(hub::find(Use::tokenizer, "key", "owner/sentencepiece"));
}

TEST_CASE("the line names the revision that was asked for, a short commit in full") {
  HubCache cache;
  cache.file(kModel, "README.md", "x");
  cache.ref(kModel, "v1", kCommit);
  const auto line = [](const std::string& revision) {
    const std::string error = error_of([&] { hub::find(Use::model, "key", "owner/name@" + revision); });
    return error.substr(error.find("hf download"));
  };
  CHECK(line("v1") == "hf download owner/name --revision v1");
  CHECK(line("0a1b") == "hf download owner/name --revision " + kCommit);
  CHECK(line("v2") == "hf download owner/name --revision v2");
}

TEST_CASE("links that lead to nothing or out of the repository") {
  HubCache cache;
  cache.files(kModel, {{"config.json", "{}"}, {"model.safetensors", "x"}});
  const fs::path link = cache.snapshot(kModel) / "generation_config.json", secret = cache.dir.write("secret", "{}");
  fs::create_symlink("../../blobs/gone", link);
  for (const Use use : {Use::model, Use::weights, Use::tokenizer})
    CHECK(answer(use) == in_part(cache, "generation_config.json is a link to nothing"));
  for (const fs::path& out : {secret, fs::path("../../refs/main"), fs::path("../../../secret")}) {
    fs::remove(link);
    fs::create_symlink(out, link);
    const std::string real = fs::canonical(link).string();
    CHECK(answer(Use::model) == "key: " + link.string() + " is a link to " + real +
                                    ", and files of a snapshot lie in it or in the blobs of " + kModel +
                                    ". Remove the link, and fetch the file: hf download owner/name");
  }
  // A file that nobody reads, and a file without links, as where the cache can have none.
  fs::remove(link);
  fs::create_symlink("../../blobs/gone", cache.snapshot(kModel) / "pytorch_model.bin");
  cache.dir.write(kModel + "/snapshots/" + kCommit + "/generation_config.json", "{}");
  CHECK(answer(Use::weights) == "whole");
}

TEST_CASE("data sets: parts that are missing, downloads that have not ended, links") {
  HubCache cache;
  cache.files(kData, {{"README.md", "x"}, {"data/train-00000-of-00002.parquet", "x"}});
  const std::string snapshot = cache.snapshot(kData).string();
  const auto part = [&](const std::string& what) {
    return "key: " + snapshot + " is there in part: " + what +
           ". Fetch the rest: hf download owner/rows --repo-type dataset. To read what is there, name the folder: " +
           snapshot;
  };
  CHECK(answer(Use::data) == part("data/train-00001-of-00002.parquet is missing"));
  cache.file(kData, "data/train-00001-of-00002.parquet", "x");
  CHECK(answer(Use::data) == "whole");
  CHECK(hub::find(Use::data, "key", "owner/rows") == cache.snapshot(kData));
  const auto blob = cache.dir.write(kData + "/blobs/77.incomplete", "x");
  CHECK(answer(Use::data) == part("a download has not ended (" + blob.string() + ")"));
  fs::remove(blob);
  const fs::path link = cache.snapshot(kData) / "data/test.jsonl";
  fs::create_symlink("../../../blobs/gone", link);
  CHECK(answer(Use::data) == part("data/test.jsonl is a link to nothing"));
  for (const char* out : {"/etc/hosts", "/etc"}) {
    fs::remove(link);
    fs::create_symlink(out, link);
    SAYS(answer(Use::data), link.string() + " is a link to /etc");
  }
}

TEST_CASE("parts are counted from 0 or from 1, each file for itself") {
  CHECK(hub::missing_part({}).empty());
  CHECK(hub::missing_part({"a-00000-of-00001.json", "b-1-of-2", "b-2-of-2", "x-of-y", "-of-", "a-of-3"}).empty());
  CHECK(hub::missing_part({"a-0-of-2", "a-1-of-2", "b-0-of-3", "b-2-of-3"}) == "b-1-of-3");
  CHECK(hub::missing_part({"en/a-00001-of-00002.json", "de/a-00000-of-00002.json"}) == "de/a-00001-of-00002.json");
  CHECK(hub::missing_part({"a-00001-of-00003.json"}) == "a-00000-of-00003.json");
  CHECK(hub::missing_part({"a-000000-of-999999"}) == "a-000001-of-999999");
  CHECK(hub::missing_part({"a-0-of-99999999999999999999", "a-99999999999999999999-of-2"}).empty());
}

TEST_CASE("how a name that is not there is fetched, and what is no name") {
  HubCache cache;
  const std::string folder = cache.dir.path().string();
  CHECK(hub::how_to_fetch(Use::model, "owner/name@v1") ==
        "; the Hub's cache, " + folder + ", has no such model either. Fetch it: hf download owner/name --revision v1");
  CHECK(hub::how_to_fetch(Use::tokenizer, "gpt2") ==
        "; the Hub's cache, " + folder + ", has no such model either. Fetch it: hf download gpt2");
  CHECK(hub::how_to_fetch(Use::data, "owner/rows") ==
        "; the Hub's cache, " + folder +
            ", has no such data set either. Fetch it: hf download owner/rows --repo-type dataset");
  CHECK(hub::how_to_fetch(Use::model, "owner/name@refs/pr/1") ==
        "; of a name of the Hub 'refs/pr/1' would be the revision, of letters, digits, '.', '_', '+' and '-'");
  for (const char* name : {"rows", "data/train.jsonl", "tests/rows", "/a/b", "../b"})
    CHECK(hub::how_to_fetch(Use::data, name) == "");
  const Variable no_cache("HF_HUB_CACHE", std::nullopt), old("HUGGINGFACE_HUB_CACHE", std::nullopt),
      hf_home("HF_HOME", std::nullopt), xdg("XDG_CACHE_HOME", std::nullopt), home("HOME", std::nullopt);
  CHECK(hub::how_to_fetch(Use::model, "owner/name") ==
        "; where the Hub's cache is nothing says: HF_HUB_CACHE, HF_HOME and HOME are not set");
  CHECK_FALSE(hub::find(Use::model, "key", "owner/name"));
}

TEST_CASE("what is in no cache yet is told apart from what is here, in part or wrong") {
  HubCache cache;
  for (const char* name : {"owner/name", "owner/name@v1", "Qwen/Qwen2.5-1.5B"})
    CHECK_MESSAGE(hub::is_absent(Use::model, name), name);
  for (const char* name : {"/a/b", "./a", "tests/rows", "tests", "nowhere", "owner/name@refs/pr/1", "owner/model.gguf"})
    CHECK_MESSAGE(!hub::is_absent(Use::model, name), name);
  cache.ref("models--owner--name", "main", kCommit);  // a snapshot that is not whole is here
  CHECK_FALSE(hub::is_absent(Use::model, "owner/name"));
  CHECK(hub::is_absent(Use::data, "owner/name"));
}
