#include "modeling/weight/safetensors_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include "modeling/error.hpp"
#include "modeling/weight/safetensors_header.hpp"

namespace hexad::modeling {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

uint64_t bytes_of(const TensorSpec& spec) {
  uint64_t bytes = c10::elementSize(spec.dtype);
  for (int64_t size : spec.shape) bytes *= uint64_t(size);
  return bytes;
}

void write_all(int fd, const void* data, uint64_t size, uint64_t offset, const std::string& file) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = pwrite(fd, bytes, size, off_t(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write {}: {}", file, std::strerror(errno));
    bytes += written, size -= uint64_t(written), offset += uint64_t(written);
  }
}

// Consecutive specs, as many as fit the limit; at least one each.
std::vector<std::vector<TensorSpec>> split(const std::vector<TensorSpec>& specs, uint64_t limit) {
  std::vector<std::vector<TensorSpec>> shards;
  uint64_t size = 0;
  for (const TensorSpec& spec : specs) {
    const uint64_t bytes = bytes_of(spec);
    if (shards.empty() || size + bytes > limit) shards.emplace_back(), size = 0;
    shards.back().push_back(spec);
    size += bytes;
  }
  return shards;
}

}  // namespace

// A file under its temporary name; removed unless committed.
struct SafetensorsWriter::Shard {
  std::string name;  // final file name
  std::filesystem::path temporary;
  int fd;

  Shard(std::string final_name, const std::filesystem::path& dir)
      : name(std::move(final_name)), temporary(dir / ("." + name + ".partial")) {
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) fail("cannot create {}: {}", temporary.string(), std::strerror(errno));
  }
  Shard(Shard&& other) noexcept
      : name(std::move(other.name)), temporary(std::move(other.temporary)), fd(std::exchange(other.fd, -1)) {}
  ~Shard() {
    if (fd < 0) return;
    close(fd);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
  void commit(const std::filesystem::path& dir) {
    std::filesystem::rename(temporary, dir / name);
    close(std::exchange(fd, -1));
  }
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& dir, const std::vector<TensorSpec>& specs,
                                     uint64_t max_shard_bytes)
    : dir_(dir) {
  std::filesystem::create_directories(dir);
  const auto shards = split(specs, max_shard_bytes);
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    open_shard(name, shards[i]);
  }
}

void SafetensorsWriter::open_shard(const std::string& name, const std::vector<TensorSpec>& specs) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const TensorSpec& spec : specs) {
    const uint64_t end = offset + bytes_of(spec);
    header[spec.name] = {
        {"dtype", safetensors_dtype(spec.dtype)}, {"shape", spec.shape}, {"data_offsets", {offset, end}}};
    if (!places_.emplace(spec.name, Place{shards_.size(), offset, spec}).second) {
      fail("{}: tensor '{}' is listed twice", (dir_ / name).string(), spec.name);
    }
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  for (const TensorSpec& spec : specs) places_.at(spec.name).begin += 8 + length;
  total_bytes_ += offset;

  Shard& shard = shards_.emplace_back(name, dir_);
  const std::string file = shard.temporary.string();
  write_all(shard.fd, &length, 8, 0, file);
  write_all(shard.fd, text.data(), length, 8, file);
  if (ftruncate(shard.fd, off_t(8 + length + offset)) != 0) fail("cannot write {}: {}", file, std::strerror(errno));
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(const std::string& name, const at::Tensor& tensor) {
  const auto found = places_.find(name);
  if (found == places_.end()) fail("{}: tensor '{}' was not announced", dir_.string(), name);
  Place& place = found->second;
  if (place.written) fail("{}: tensor '{}' is written twice", dir_.string(), name);
  if (tensor.sizes() != at::IntArrayRef(place.spec.shape)) {
    fail("{}: tensor '{}' has shape [{}], wanted [{}]", dir_.string(), name, fmt::join(tensor.sizes(), ", "),
         fmt::join(place.spec.shape, ", "));
  }
  const at::Tensor host = tensor.detach().to(at::TensorOptions(at::kCPU).dtype(place.spec.dtype)).contiguous();
  const Shard& shard = shards_[place.shard];
  write_all(shard.fd, host.const_data_ptr(), host.nbytes(), place.begin, shard.temporary.string());
  place.written = true;
}

void SafetensorsWriter::finish() {
  for (const auto& [name, place] : places_) {
    if (!place.written) fail("{}: tensor '{}' was never written", dir_.string(), name);
  }
  std::set<std::string> kept;
  for (Shard& shard : shards_) {
    shard.commit(dir_);
    kept.insert(shard.name);
  }
  if (shards_.size() > 1) write_index(), kept.insert(kIndexName);
  remove_older(kept);
}

void SafetensorsWriter::write_index() const {
  nlohmann::json index = {{"metadata", {{"total_size", total_bytes_}}}, {"weight_map", nlohmann::json::object()}};
  for (const auto& [name, place] : places_) index["weight_map"][name] = shards_[place.shard].name;
  const std::filesystem::path temporary = dir_ / ("." + std::string(kIndexName) + ".partial");
  std::ofstream out(temporary);
  out << index.dump(2) << '\n';
  out.close();
  if (!out) fail("cannot write {}", temporary.string());
  std::filesystem::rename(temporary, dir_ / kIndexName);
}

void SafetensorsWriter::remove_older(const std::set<std::string>& kept) const {
  std::vector<std::filesystem::path> older;
  for (const auto& file : std::filesystem::directory_iterator(dir_)) {
    const std::string name = file.path().filename().string();
    const bool is_shard = name.rfind("model-", 0) == 0 && file.path().extension() == ".safetensors";
    const bool is_weights = is_shard || name == "model.safetensors" || name == kIndexName;
    if (is_weights && !kept.count(name)) older.push_back(file.path());
  }
  for (const std::filesystem::path& path : older) std::filesystem::remove(path);
}

}  // namespace hexad::modeling
