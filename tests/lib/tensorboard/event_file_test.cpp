// Event files, read back byte for byte as TensorBoard reads them.
#include "lib/tensorboard/event_file.hpp"

#include <bit>
#include <cstring>

#include "tests/support/toy/toy.hpp"

using namespace hexad::tensorboard;

namespace {

template <typename T>
T raw(const std::string& bytes, size_t at) {
  T value;
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The records of a file, their lengths and CRCs checked.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> found;
  for (size_t at = 0; at < file.size();) {
    const auto size = raw<uint64_t>(file, at);
    CHECK(raw<uint32_t>(file, at + 8) == masked_crc32c(file.substr(at, 8)));
    found.push_back(file.substr(at + 12, size));
    CHECK(raw<uint32_t>(file, at + 12 + size) == masked_crc32c(found.back()));
    at += 16 + size;
  }
  return found;
}

// One protobuf message: field number -> values, varints and fixed ones as their bytes.
std::map<int, std::vector<std::string>> fields(const std::string& message) {
  std::map<int, std::vector<std::string>> found;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
    if (key % 8 == 0) {
      found[static_cast<int>(key / 8)].push_back(std::to_string(varint()));
      continue;
    }
    if (key % 8 == 2) size = varint();
    found[static_cast<int>(key / 8)].push_back(message.substr(at, size));
    at += size;
  }
  return found;
}

std::string event_file(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      return plugin_test::read_text(entry.path());
  }
  return "";
}

}  // namespace

TEST_CASE("the check value of CRC-32C, masked") {
  const uint32_t crc = 0xE3069283u;  // of "123456789", RFC 3720
  CHECK(masked_crc32c("123456789") == std::rotr(crc, 15) + 0xA282EAD8u);
}

TEST_CASE("a version, then one event a step with its scalars") {
  const toy::TempDir dir;
  EventFile file(dir.path());
  file.write(300, 1.5, {{"train/reward", 0.25}, {"train/loss", -2}});
  const auto events = records(event_file(dir.path()));
  REQUIRE(events.size() == 2);
  CHECK(fields(events[0]).at(3).at(0) == "brain.Event:2");
  const auto event = fields(events[1]);
  CHECK(raw<double>(event.at(1).at(0), 0) == 1.5);
  CHECK(event.at(2).at(0) == "300");
  const auto values = fields(event.at(5).at(0)).at(1);
  REQUIRE(values.size() == 2);
  CHECK(fields(values[0]).at(1).at(0) == "train/loss");
  CHECK(raw<float>(fields(values[0]).at(2).at(0), 0) == -2.0f);
  CHECK(raw<float>(fields(values[1]).at(2).at(0), 0) == 0.25f);
}
