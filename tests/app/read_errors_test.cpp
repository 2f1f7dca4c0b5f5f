// A disk that fails in the middle of a file: whoever reads it says so, and nothing goes on with the first part.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/report.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

// read(2) and pread(2) of the file TOY_BAD_FILE fail from byte TOY_GOOD_BYTES on, and readdir(3) of the folder.
constexpr const char* kDisk = R"C(
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define SEEN __attribute__((visibility("default"))) ssize_t
// Of count bytes from `at` those that the disk has; -1: none.
static ssize_t sound(int descriptor, off_t at, size_t count) {
  const char *bad = getenv("TOY_BAD_FILE"), *good = getenv("TOY_GOOD_BYTES");
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = bad && good ? readlink(link, name, sizeof name - 1) : -1;
  if (length <= 0) return count;
  name[length] = 0;
  const off_t end = atol(good);
  if (strcmp(name, bad) != 0 || at + (off_t)count <= end) return count;
  return at >= end ? (errno = EIO, -1) : end - at;
}
__attribute__((visibility("default"))) struct dirent* readdir(DIR* folder) {
  if (sound(dirfd(folder), 0, 1) < 0) return NULL;
  return ((struct dirent * (*)(DIR*)) dlsym(RTLD_NEXT, "readdir"))(folder);
}
__attribute__((visibility("default"))) struct dirent64* readdir64(DIR* folder) {
  return (struct dirent64*)readdir(folder);
}
SEEN read(int descriptor, void *bytes, size_t count) {
  const ssize_t some = sound(descriptor, lseek(descriptor, 0, SEEK_CUR), count);
  if (some < 0) return -1;
  return ((ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(descriptor, bytes, some);
}
SEEN pread(int descriptor, void *bytes, size_t count, off_t at) {
  const ssize_t some = sound(descriptor, at, count);
  if (some < 0) return -1;
  return ((ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread"))(descriptor, bytes, some, at);
}
SEEN pread64(int descriptor, void *bytes, size_t count, off_t at) { return pread(descriptor, bytes, count, at); }
)C";

// The program beside a disk that has the first `good` bytes of `file` and fails at the next.
Ended run(const Arguments& arguments, const toy::fs::path& file, size_t good) {
  static const plugin_test::PluginFolder folder;
  static const std::string disk = folder.compile("bad_disk", "-ldl", kDisk).string();
  ::setenv("LD_PRELOAD", disk.c_str(), 1);
  ::setenv("TOY_BAD_FILE", toy::fs::canonical(file).c_str(), 1);
  ::setenv("TOY_GOOD_BYTES", std::to_string(good).c_str(), 1);
  Ended ended = toy::run(arguments);
  for (const char* name : {"LD_PRELOAD", "TOY_BAD_FILE", "TOY_GOOD_BYTES"}) ::unsetenv(name);
  return ended;
}

// It ends with an error that names the file and the disk's fault.
void fails(const Arguments& arguments, const toy::fs::path& file, size_t good) {
  const Ended ended = run(arguments, file, good);
  INFO("hexad " << fmt::format("{}", fmt::join(arguments, " ")) << " with " << file.string());
  CHECK(ended.code > 0);
  const std::string said = ended.out + ended.err;
  CHECK_MESSAGE(contains(said, file.filename().string()), said);
  CHECK_MESSAGE(contains(said, "Input/output error"), said);
  CHECK_MESSAGE(!contains(said, "internal error"), said);
}

bool can_preload() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  test_report::skipped("a sanitizer wants to be the first library");
  return false;
#else
  return true;
#endif
}

// A copy of the quickstart's model, in which files may be bad.
toy::fs::path model_in(const TempDir& dir) {
  toy::fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "model");
  dir.write("model/chat_template.jinja", "{% for message in messages %}{{ message.content }}{% endfor %}");
  dir.write("model/generation_config.json", "{\"eos_token_id\": 2}");
  return dir / "model";
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("every file that a run reads") {
  if (!can_preload()) return;
  const TempDir dir;
  const toy::fs::path model = model_in(dir);
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += "{\"input\": \"ab\", \"output\": \"c\"}\n";
  const auto data = dir.write("rows.jsonl", rows);
  const auto array =
      dir.write("rows.json", "[{\"input\": \"ab\", \"output\": \"c\"}, {\"input\": \"a\", \"output\": \"b\"}]");
  const auto prompt = dir.write("prompt.txt", "a{}");
  const auto trained = [&](Arguments more) {
    more.push_back("policy.model_name=" + model.string());
    more.push_back("grpo.max_num_steps=1");
    return toy::train(dir, more);
  };
  const Arguments plain = trained({});
  fails(plain, dir / "toy.yaml", 100);
  for (const char* file :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"})
    fails(plain, model / file, 10);

  const auto over = [&](const toy::fs::path& file, Arguments more = {}) {
    more.insert(more.end(), {"~data.train.kind", "~data.train.size", "~data.train.validation_size",
                             "data.train.dataset_name=ResponseDataset", "+data.train.data_path=" + file.string()});
    return trained(more);
  };
  CHECK(toy::run(over(data)).code == 0);
  fails(over(data), data, rows.find('\n', rows.size() / 2) + 1);  // after a whole line
  fails(over(data), data, 0);
  fails(over(array), array, 20);
  fails(over(data, {"++data.train.prompt_file=" + prompt.string()}), prompt, 1);
}

TEST_CASE("every file that another command reads") {
  if (!can_preload()) return;
  const TempDir dir;
  const toy::fs::path model = model_in(dir);
  const auto texts = dir.write("texts.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"abh\"}\n");
  const auto ids = dir.write("ids.jsonl", "{\"token_ids\": [1, 4]}\n{\"token_ids\": [7]}\n");
  const auto yaml = dir.write("toy.yaml", toy::config_text(dir.path()));
  fails({"config", "check", yaml.string()}, yaml, 100);
  fails({"tokenize", model.string(), "--input", texts.string()}, texts, 15);
  fails({"tokenize", model.string(), "--input", texts.string()}, model / "tokenizer.json", 10);
  fails({"score", model.string(), "--input", ids.string()}, ids, 24);
  dir.write("run/config.yaml", "a: 1\n");
  const auto metrics = dir.write("run/metrics.jsonl", "{\"step\": 1, \"train/loss\": 1}\n{\"step\": 2}\n");
  fails({"report", (dir / "run").string()}, metrics, 30);
  fails({"report", (dir / "run").string()}, dir / "run/config.yaml", 2);
}

TEST_CASE("every folder that is listed") {
  if (!can_preload()) return;
  const TempDir dir;
  const toy::fs::path model = model_in(dir), data = dir / "data", steps = dir / "checkpoints";
  dir.write("data/train.jsonl", "{\"input\": \"ab\", \"output\": \"c\"}\n");
  REQUIRE(toy::run(toy::train(dir, {"grpo.max_num_steps=2"})).code == 0);
  const auto unlisted = [](const Arguments& arguments, const toy::fs::path& folder) {
    const Ended ended = run(arguments, folder, 0);
    const std::string said = ended.out + ended.err;
    CHECK_MESSAGE(contains(said, folder.string() + ": cannot be listed: Input/output error"), said);
    return ended.code;
  };
  CHECK(unlisted(toy::train(dir), steps) == 2);
  CHECK(unlisted({"checkpoint", "list", steps.string()}, steps) == 2);
  CHECK(unlisted(toy::train(dir, {"policy.model_name=" + model.string()}), model) == 2);
  CHECK(unlisted({"convert", model.string(), (dir / "out").string()}, model) == 2);
  CHECK(unlisted(toy::train(dir, {"~data.train.kind", "~data.train.size", "~data.train.validation_size",
                                  "data.train.dataset_name=ResponseDataset", "+data.train.data_path=" + data.string()}),
                 data) == 2);
  CHECK(unlisted({"plugin", "list", "--path", dir.path().string()}, dir.path()) == 0);
}

TEST_CASE("a plugin's library and manifest") {
  if (!can_preload()) return;
  const TempDir dir;
  toy::fs::copy(toy::plugins(), dir / "plugins");
  const std::string place = fmt::format("plugins.paths=[{}]", (dir / "plugins").string());
  fails(toy::train(dir, {place}), dir / "plugins/libtoy_backend.so", 5000);
  const Ended list =
      run({"plugin", "list", "--path", (dir / "plugins").string()}, dir / "plugins/libtoy_backend.hexad.json", 50);
  CHECK_MESSAGE(contains(list.out, "libtoy_backend.hexad.json: cannot be read: Input/output error"), list.out);
}

TEST_SUITE_END();
