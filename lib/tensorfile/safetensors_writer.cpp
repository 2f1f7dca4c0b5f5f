#include "lib/tensorfile/safetensors_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/open_file.hpp"
#include "lib/base/json.hpp"
#include "lib/tensorfile/growing_name.hpp"
#include "lib/tensorfile/safetensors_header.hpp"
#include "lib/tensorfile/write_all.hpp"

namespace hexad::tensorfile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";

fs::path partial_name(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + ".partial");
}

void give_name(const fs::path& temporary, const fs::path& path) {
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return;
  fail(ErrorKind::data, "{}: cannot be given its name: {}", path.string(), std::strerror(errno));
}

// Consecutive specs, as many as fit the limit; at least one each.
std::vector<std::vector<TensorSpec>> split(const std::vector<TensorSpec>& specs, uint64_t limit) {
  std::vector<std::vector<TensorSpec>> shards(1);
  uint64_t size = 0;
  for (const TensorSpec& spec : specs) {
    if (!shards.back().empty() && size + spec.bytes() > limit) shards.emplace_back(), size = 0;
    shards.back().push_back(spec);
    size += spec.bytes();
  }
  return shards;
}

std::string shard_name(size_t shard, size_t shards) {
  return shards == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(fs::path path, const std::vector<TensorSpec>& specs,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)) {
  const std::string header = format_safetensors_header(specs, metadata);
  uint64_t end = header.size();
  for (const TensorSpec& spec : specs) {
    if (!places_.emplace(spec.name, Place{spec, end}).second) {
      fail(ErrorKind::internal, "{}: tensor \"{}\" is listed twice", path_.string(), spec.name);
    }
    end += spec.bytes();
  }
  const fs::path temporary = growing_name(path_);
  descriptor_ = open_to_write(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (descriptor_ < 0) fail(ErrorKind::data, "{}: cannot be written: {}", path_.string(), why_not_opened(errno));
  try {
    write_all(descriptor_, header.data(), header.size(), 0, path_);
  } catch (...) {
    ::close(descriptor_);
    ::unlink(temporary.c_str());
    throw;
  }
  temporary_ = temporary;
  appended_ = header.size();
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      appended_(other.appended_),
      places_(std::move(other.places_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

const SafetensorsWriter::Place& SafetensorsWriter::awaited_place(std::string_view name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) fail(ErrorKind::internal, "{}: tensor \"{}\" was not announced", path_.string(), name);
  if (found->second.written) fail(ErrorKind::internal, "{}: tensor \"{}\" is written twice", path_.string(), name);
  return found->second;
}

const TensorSpec& SafetensorsWriter::awaited(std::string_view name) const { return awaited_place(name).spec; }

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> data) {
  const Place& place = awaited_place(name);
  if (data.size() != place.spec.bytes()) {
    fail(ErrorKind::internal, "{}: tensor \"{}\": got {} bytes, wanted {}", path_.string(), name, data.size(),
         place.spec.bytes());
  }
  if (place.begin != appended_) stop_growing();
  write_all(descriptor_, data.data(), data.size(), place.begin, path_);
  if (appended_) *appended_ += data.size();
  places_.find(name)->second.written = true;
}

// Before bytes lie where others are still to come: whoever follows the file would take these for zeros.
void SafetensorsWriter::stop_growing() {
  if (!appended_) return;
  const fs::path partial = partial_name(path_);
  give_name(temporary_, partial);
  temporary_ = partial;
  appended_.reset();
}

void SafetensorsWriter::require_complete() const {
  for (const auto& [name, place] : places_) {
    if (place.written) continue;
    fail(ErrorKind::internal, "{}: tensor \"{}\" was announced but not written", path_.string(), name);
  }
}

void SafetensorsWriter::finish() {
  require_complete();
  if (::close(std::exchange(descriptor_, -1)) != 0) refuse_writing(path_, errno);
  give_name(temporary_, path_);
  temporary_.clear();
}

ShardedWriter::ShardedWriter(fs::path directory, const std::vector<TensorSpec>& specs, uint64_t max_shard_bytes)
    : directory_(std::move(directory)) {
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) fail(ErrorKind::data, "{}: cannot be made: {}", directory_.string(), error.message());
  const std::vector<std::vector<TensorSpec>> shards = split(specs, max_shard_bytes);
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    for (const TensorSpec& spec : shards[shard]) {
      if (!shard_of_.emplace(spec.name, shard).second) {
        fail(ErrorKind::internal, "{}: tensor \"{}\" is listed twice", directory_.string(), spec.name);
      }
      bytes_ += spec.bytes();
    }
    shards_.emplace_back(directory_ / shard_name(shard, shards.size()), shards[shard]);
  }
}

std::string ShardedWriter::file_name(size_t shard) const { return shard_name(shard, shards_.size()); }

size_t ShardedWriter::shard_of(std::string_view name) const {
  const auto found = shard_of_.find(name);
  if (found != shard_of_.end()) return found->second;
  fail(ErrorKind::internal, "{}: tensor \"{}\" was not announced", directory_.string(), name);
}

const TensorSpec& ShardedWriter::awaited(std::string_view name) const { return shards_[shard_of(name)].awaited(name); }

void ShardedWriter::write(std::string_view name, std::span<const std::byte> data) {
  shards_[shard_of(name)].write(name, data);
}

void ShardedWriter::finish() {
  for (const SafetensorsWriter& shard : shards_) shard.require_complete();  // before the first has its name
  for (SafetensorsWriter& shard : shards_) shard.finish();
  if (shards_.size() > 1) write_index();
  remove_older();
}

void ShardedWriter::write_index() const {
  nlohmann::json index = {{"metadata", {{"total_size", bytes_}}}, {"weight_map", nlohmann::json::object()}};
  for (const auto& [name, shard] : shard_of_) index["weight_map"][name] = file_name(shard);
  const fs::path path = directory_ / kIndexName, temporary = partial_name(path);
  try {
    write_file(temporary, json_text(index, 2) + "\n");
    give_name(temporary, path);
  } catch (const Error&) {
    fs::remove(temporary);
    throw;
  }
}

void ShardedWriter::remove_older() const {
  std::set<std::string> kept;
  for (size_t shard = 0; shard < shards_.size(); ++shard) kept.insert(file_name(shard));
  if (shards_.size() > 1) kept.insert(kIndexName);
  std::vector<fs::path> older;
  for (const fs::directory_entry& file : entries_of(directory_)) {
    const std::string name = file.path().filename().string();
    const bool is_shard = name.starts_with("model-") && name.ends_with(".safetensors");
    if ((is_shard || name == "model.safetensors" || name == kIndexName) && !kept.contains(name))
      older.push_back(file.path());
  }
  for (const fs::path& path : older) fs::remove(path);
}

}  // namespace hexad::tensorfile
