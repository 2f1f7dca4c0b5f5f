#include "lib/tensorboard/event_file.hpp"

#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>

// A file is a series of TFRecords (length, its CRC, bytes, their CRC), each a serialized protobuf message `Event` of
// tensorflow/core/util/event.proto: wall_time = 1 (double), step = 2, file_version = 3, summary = 5; Summary.value = 1
// with tag = 1 and simple_value = 2 (float).
namespace hexad::tensorboard {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? (value >> 1) ^ 0x82F63B78u : value >> 1;
    table[i] = value;
  }
  return table;
}();

template <typename T>
void append_raw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void append_key(std::string& out, int field, Wire wire) {
  append_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

std::string event_at(double wall_time, int64_t step) {
  std::string event;
  append_key(event, 1, Wire::fixed64);
  append_raw(event, wall_time);
  append_key(event, 2, Wire::varint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xA282EAD8u;
}

EventFile::EventFile(const std::filesystem::path& directory) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  out_.emplace(directory / fmt::format("events.out.tfevents.{}.{}", static_cast<int64_t>(now), host));
  std::string first = event_at(now, 0);
  append_bytes(first, 3, "brain.Event:2");
  record(first);
}

void EventFile::write(int64_t step, double wall_time, const std::map<std::string, double>& scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    std::string value;
    append_bytes(value, 1, name);
    append_key(value, 2, Wire::fixed32);
    append_raw(value, static_cast<float>(number));
    append_bytes(summary, 1, value);
  }
  std::string event = event_at(wall_time, step);
  append_bytes(event, 5, summary);
  record(event);
}

void EventFile::record(const std::string& event) {
  std::string length, bytes;
  append_raw(length, static_cast<uint64_t>(event.size()));
  bytes = length;
  append_raw(bytes, masked_crc32c(length));
  bytes += event;
  append_raw(bytes, masked_crc32c(event));
  out_->append(bytes);
}

}  // namespace hexad::tensorboard
