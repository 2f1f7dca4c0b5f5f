#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/tensorfile/safetensors_header.hpp"

namespace hexad::tensorfile {
namespace {

void write_all(int descriptor, const void* data, size_t size, const std::filesystem::path& path) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorKind::data, "{}: cannot be written: {}", path.string(), std::strerror(errno));
    from += written, size -= static_cast<size_t>(written);
  }
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> specs,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), specs_(std::move(specs)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(ErrorKind::data, "{}: cannot be written: {}", path_.string(), std::strerror(errno));
  const std::string header = format_safetensors_header(specs_, metadata);
  write_all(descriptor_, header.data(), header.size(), path_);
}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SafetensorsWriter::append(std::span<const std::byte> data) {
  if (next_ == specs_.size()) fail(ErrorKind::internal, "{}: more tensors than announced", path_.string());
  const TensorSpec& spec = specs_[next_++];
  if (data.size() != spec.bytes()) {
    fail(ErrorKind::internal, "{}: tensor \"{}\": got {} bytes, wanted {}", path_.string(), spec.name, data.size(),
         spec.bytes());
  }
  write_all(descriptor_, data.data(), data.size(), path_);
}

void SafetensorsWriter::finish() {
  if (next_ != specs_.size()) {
    fail(ErrorKind::internal, "{}: tensor \"{}\" was announced but not written", path_.string(), specs_[next_].name);
  }
  const int descriptor = std::exchange(descriptor_, -1);
  const bool synced = ::fsync(descriptor) == 0;
  const int reason = errno;
  if (::close(descriptor) != 0 || !synced) {
    fail(ErrorKind::data, "{}: cannot be written: {}", path_.string(), std::strerror(synced ? errno : reason));
  }
}

ShardedWriter::ShardedWriter(std::filesystem::path directory, std::vector<TensorSpec> specs, uint64_t max_shard_bytes)
    : directory_(std::move(directory)) {
  uint64_t shard_bytes = 0;
  shards_.emplace_back();
  for (TensorSpec& spec : specs) {
    if (!shards_.back().empty() && shard_bytes + spec.bytes() > max_shard_bytes)
      shards_.emplace_back(), shard_bytes = 0;
    shard_bytes += spec.bytes();
    shards_.back().push_back(std::move(spec));
  }
  open_shard();
}

std::string ShardedWriter::file_name(size_t shard) const {
  return shards_.size() == 1 ? "model.safetensors"
                             : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards_.size());
}

void ShardedWriter::open_shard() {
  written_ = 0;
  writer_ = std::make_unique<SafetensorsWriter>(directory_ / file_name(shard_), shards_[shard_]);
}

void ShardedWriter::append(std::span<const std::byte> data) {
  if (written_ == shards_[shard_].size() && shard_ + 1 < shards_.size()) {
    writer_->finish();
    ++shard_;
    open_shard();
  }
  writer_->append(data);
  ++written_;
}

void ShardedWriter::finish() {
  writer_->finish();
  if (shards_.size() == 1) return;
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  uint64_t total = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    for (const TensorSpec& spec : shards_[shard]) map[spec.name] = file_name(shard), total += spec.bytes();
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  std::ofstream out(directory_ / "model.safetensors.index.json");
  out << json_text(index, 2) << '\n';
  if (!out.flush()) fail(ErrorKind::data, "{}: the index cannot be written", directory_.string());
}

}  // namespace hexad::tensorfile
