#include "lib/tensorfile/gguf_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/error.hpp"
#include "lib/base/file/open_file.hpp"
#include "lib/tensorfile/gguf_block.hpp"
#include "lib/tensorfile/write_all.hpp"

namespace hexad::tensorfile {
namespace {

constexpr uint32_t kMagic = 0x46554747, kVersion = 3;
constexpr uint64_t kAlignment = 32;  // the format's, where general.alignment does not say otherwise
constexpr uint32_t kArray = 9;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& out, const std::string& text) {
  put(out, uint64_t{text.size()});
  out += text;
}

void put(std::string& out, bool value) { put(out, static_cast<uint8_t>(value)); }

// The format's number of a type.
template <typename T>
constexpr uint32_t kType = 0;
template <>
constexpr uint32_t kType<uint32_t> = 4;
template <>
constexpr uint32_t kType<int32_t> = 5;
template <>
constexpr uint32_t kType<float> = 6;
template <>
constexpr uint32_t kType<bool> = 7;
template <>
constexpr uint32_t kType<std::string> = 8;

template <typename T>
void put_value(std::string& out, const T& value) {
  put(out, kType<T>);
  put(out, value);
}

template <typename T>
void put_value(std::string& out, const std::vector<T>& list) {
  put(out, kArray);
  put(out, kType<T>);
  put(out, uint64_t{list.size()});
  for (const T& value : list) put(out, value);
}

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string header_of(const GgufEntries& metadata, const std::vector<GgufSpec>& specs) {
  std::string out;
  put(out, kMagic);
  put(out, kVersion);
  put(out, uint64_t{specs.size()});
  put(out, uint64_t{metadata.size()});
  for (const auto& [key, stored] : metadata) {
    put(out, key);
    std::visit([&](const auto& value) { put_value(out, value); }, stored);
  }
  uint64_t offset = 0;
  for (const GgufSpec& spec : specs) {
    put(out, spec.name);
    put(out, static_cast<uint32_t>(spec.shape.size()));
    for (auto size = spec.shape.rbegin(); size != spec.shape.rend(); ++size) put(out, static_cast<uint64_t>(*size));
    put(out, static_cast<uint32_t>(spec.type));
    put(out, offset);
    offset += aligned(spec.bytes());
  }
  return out;
}

}  // namespace

uint64_t GgufSpec::elements() const {
  uint64_t count = 1;
  for (const int64_t size : shape) count *= static_cast<uint64_t>(size);
  return count;
}

uint64_t GgufSpec::bytes() const {
  const GgufBlock& block = *gguf_block(static_cast<uint32_t>(type));
  return elements() / block.elements * block.bytes;
}

GgufWriter::GgufWriter(std::filesystem::path path, const GgufEntries& metadata, std::vector<GgufSpec> specs)
    : path_(std::move(path)), specs_(std::move(specs)) {
  descriptor_ = open_to_write(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (descriptor_ < 0) fail(ErrorKind::data, "{}: cannot be written: {}", path_.string(), why_not_opened(errno));
  try {
    write(header_of(metadata, specs_));
    pad();
  } catch (...) {
    ::close(descriptor_);
    ::unlink(path_.c_str());
    throw;
  }
}

GgufWriter::~GgufWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void GgufWriter::write(std::string_view bytes) {
  write_all(descriptor_, bytes.data(), bytes.size(), offset_, path_);
  offset_ += bytes.size();
}

void GgufWriter::pad() { write(std::string(aligned(offset_) - offset_, '\0')); }

void GgufWriter::append(std::span<const std::byte> bytes) {
  const uint64_t wanted = next_ < specs_.size() ? specs_[next_].bytes() - written_ : 0;
  if (bytes.size() > wanted) {
    fail(ErrorKind::internal, "{}: tensor \"{}\": got {} bytes more, wanted at most {}", path_.string(),
         next_ < specs_.size() ? specs_[next_].name : "", bytes.size(), wanted);
  }
  write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  written_ += bytes.size();
  if (bytes.size() < wanted) return;
  pad();
  ++next_, written_ = 0;
}

void GgufWriter::finish() {
  if (next_ < specs_.size()) {
    fail(ErrorKind::internal, "{}: tensor \"{}\" has {} of its {} bytes", path_.string(), specs_[next_].name, written_,
         specs_[next_].bytes());
  }
  if (::close(std::exchange(descriptor_, -1)) == 0) return;
  const int reason = errno;
  ::unlink(path_.c_str());
  refuse_writing(path_, reason);
}

}  // namespace hexad::tensorfile
