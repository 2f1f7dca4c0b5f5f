#include "lib/tensorfile/growing_sums.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "lib/base/sha256.hpp"
#include "tests/lib/tensorfile/three_tensors.hpp"

using namespace hexad;
using namespace hexad::tensorfile;
namespace fs = std::filesystem;

namespace {

std::string sum_of(const fs::path& file) {
  const std::string text = read_file(file);
  return sha256_hex(std::as_bytes(std::span(text)));
}

// Long enough for a thread that looks every 5 ms to have looked.
void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

void write_in_order(auto& writer) {
  writer.write("a", bytes_of({1, 2}));
  wait();
  writer.write("b", bytes_of({3, 4, 5, 6}));
  writer.write("c", bytes_of({7}));
}

}  // namespace

TEST_CASE("files that grow are followed while they do, and have the sums of what lies there") {
  const TempFolder folder;
  GrowingSums sums({folder / "none", folder / "model"});
  ShardedWriter model(folder / "model", kThree, 24);
  wait();
  write_in_order(model);
  wait();
  model.finish();
  const auto found = sums.finish();
  REQUIRE(found.size() == 2);
  for (const auto& [file, sum] : found) {
    CHECK(sum.bytes == fs::file_size(file));
    CHECK(sum.sha256 == sum_of(file));
  }
  CHECK(found.begin()->first == folder / "model/model-00001-of-00002.safetensors");
}

TEST_CASE("no sum is told of a file that is not only appended to, that has no name or another's") {
  const TempFolder folder;
  GrowingSums sums({folder.path()});
  SUBCASE("tensors in another order") {
    SafetensorsWriter writer(folder / "m.safetensors", kThree);
    wait();
    writer.write("b", bytes_of({3, 4, 5, 6}));
    wait();
    writer.write("a", bytes_of({1, 2}));
    writer.write("c", bytes_of({7}));
    writer.finish();
  }
  SUBCASE("it has not been finished") {
    SafetensorsWriter writer(folder / "m.safetensors", kThree);
    wait();
    write_in_order(writer);
    CHECK(sums.finish().empty());
    return;
  }
  SUBCASE("it was abandoned") {
    SafetensorsWriter writer(folder / "m.safetensors", kThree);
    write_in_order(writer);
    wait();
  }
  SUBCASE("another file has its name now") {
    SafetensorsWriter writer(folder / "m.safetensors", kThree);
    write_in_order(writer);
    wait();
    writer.finish();
    fs::rename(folder / "m.safetensors", folder / "moved");
    folder.write("m.safetensors", "another");
  }
  SUBCASE("its writer is of another kind") {
    folder.write(".m.safetensors.partial", "x");
    wait();
    fs::rename(folder / ".m.safetensors.partial", folder / "m.safetensors");
  }
  SUBCASE("it is a link") {
    folder.write("elsewhere", "x");
    fs::create_symlink(folder / "elsewhere", folder / ".m.safetensors.growing");
    wait();
    fs::rename(folder / ".m.safetensors.growing", folder / "m.safetensors");
  }
  CHECK(sums.finish().empty());
}

TEST_CASE("whatever the order and the pace, a sum that is told is that of the file") {
  std::mt19937 random(7);
  int followed = 0;
  for (int round = 0; round < 40; ++round) {
    const TempFolder folder;
    std::vector<TensorSpec> specs;
    for (int i = 0; i < 12; ++i) specs.push_back({std::to_string(i), DType::f32, {int64_t(random() % 40'000)}});
    std::vector<size_t> order(specs.size());
    std::iota(order.begin(), order.end(), 0);
    if (round % 2) std::swap(order[random() % 12], order[random() % 12]);
    GrowingSums sums({folder.path()});
    SafetensorsWriter writer(folder / "m.safetensors", specs);
    for (const size_t i : order) {
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 8));
      writer.write(specs[i].name, bytes_of(std::vector<float>(size_t(specs[i].shape[0]), float(i + 1))));
    }
    writer.finish();
    for (const auto& [file, sum] : sums.finish()) {
      ++followed;
      CHECK(sum.sha256 == sum_of(file));
    }
  }
  CHECK(followed > 0);
}

TEST_CASE("one that is no longer wanted ends at once") {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "m.safetensors", kThree);
  { const GrowingSums sums({folder.path()}); }
  CHECK(fs::exists(folder / ".m.safetensors.growing"));
}
