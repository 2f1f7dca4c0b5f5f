#include "plugins/server_bridge/refit/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/base/file/input_file.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/http/client/event_loop.hpp"
#include "modeling/refit/host_copy.hpp"
#include "modeling/refit/weight_names.hpp"

namespace hexad::bridge {
namespace {

namespace fs = std::filesystem;
using namespace refit;
using Json = nlohmann::ordered_json;
using http::client::Clock;
using http::client::Milliseconds;

bool is_weight_file(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const char* end : {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".index.json"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

[[noreturn]] void refuse(const fs::path& path, const char* reason, const std::string& key) {
  sdk::fail(HEXAD_UNAVAILABLE,
            "weight update: cannot write %s: %s. Free space there, or set %s to a "
            "folder with room for two copies of the model",
            path.c_str(), reason, key.c_str());
}

void refuse_read(const std::string& file, const char* what, int reason) {
  sdk::fail(HEXAD_UNAVAILABLE, "weight update: %s %s: %s", file.c_str(), what, std::strerror(reason));
}

// 0, or why it could not be written.
int write_all(const fs::path& path, const std::function<void(std::ofstream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file) write(file);
  if (file) file.close();  // what was buffered goes out
  return file ? 0 : errno != 0 ? errno : EIO;
}

void put(std::ofstream& file, const void* bytes, size_t size) {
  if (file) file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

}  // namespace

Checkpoint::Checkpoint(fs::path dir, fs::path model_dir, Seconds patience, std::string key)
    : dir_(std::move(dir)),
      part_(dir_.string() + ".part"),
      model_dir_(std::move(model_dir)),
      patience_(patience),
      key_(std::move(key)) {
  fs::remove_all(part_);
  fs::create_directories(part_);
  fs::permissions(part_, fs::perms::owner_all);
}

Checkpoint::~Checkpoint() {
  std::error_code ignored;
  fs::remove_all(part_, ignored);
}

void Checkpoint::add(const sdk::Call& call, const hexad_weight_list& bucket) {
  if (bucket.count == 0) return;
  const std::string name = fmt::format("model-{:05}.safetensors", ++files_);
  Json header;
  size_t end = 0;
  for (int64_t i = 0; i < bucket.count; ++i) {
    const hexad_weight_slice& slice = bucket.slices[i];
    check_whole(slice);
    if (!file_of_.emplace(slice.name, name).second)
      sdk::fail(HEXAD_INVALID_ARGUMENT, "weight update: %s came twice", slice.name);
    const size_t begin = std::exchange(end, end + byte_size(*slice.tensor));
    header[slice.name] = {{"dtype", element_type(slice.tensor->dtype, slice.name).safetensors},
                          {"shape", std::vector<int64_t>(slice.shape, slice.shape + slice.ndim)},
                          {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data is aligned
  const uint64_t size = text.size();            // little-endian, as every machine of ours
  std::vector<std::byte> memory;
  const fs::path path = part_ / name;
  write_file(call, path, [&] {
    return write_all(path, [&](std::ofstream& file) {
      put(file, &size, sizeof size);
      put(file, text.data(), text.size());
      for (int64_t i = 0; i < bucket.count && file; ++i) {
        const auto bytes = on_host(call, *bucket.slices[i].tensor, memory);
        put(file, bytes.data(), bytes.size());
      }
    });
  });
  bytes_ += end;
}

void Checkpoint::write_file(const sdk::Call& call, const fs::path& path, const std::function<int()>& write) const {
  const auto end = Clock::now() + std::chrono::ceil<Milliseconds>(patience_);
  for (bool told = false;; std::this_thread::sleep_for(Milliseconds(200))) {
    const int error = write();
    if (error == 0) return;
    const bool full = error == ENOSPC || error == EDQUOT;
    if (!full || Clock::now() >= end || call.cancelled()) refuse(path, std::strerror(error), key_);
    if (std::exchange(told, true)) continue;
    call.log(HEXAD_LOG_WARN,
             fmt::format("weight update: cannot write {}: {}. It is tried again for {:.0f} s: free space "
                         "there",
                         path.string(), std::strerror(error), patience_.count()));
  }
}

fs::path Checkpoint::finish(const sdk::Call& call) {
  if (file_of_.empty()) sdk::fail(HEXAD_FAILED_PRECONDITION, "weight update: no weight came before its end");
  const fs::path index_path = part_ / "model.safetensors.index.json";
  const std::string index = Json{{"metadata", {{"total_size", bytes_}}}, {"weight_map", file_of_}}.dump();
  write_file(call, index_path, [&] {
    return write_all(index_path, [&](std::ofstream& file) { put(file, index.data(), index.size()); });
  });
  for (const fs::directory_entry& entry : fs::directory_iterator(model_dir_)) {
    if (!entry.is_regular_file() || is_weight_file(entry.path())) continue;
    const fs::path copy = part_ / entry.path().filename();
    // One look at what the name leads to: that is copied, whatever the name leads to by then.
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const InputFile opened(entry.path(), descriptor, refuse_read);
    const std::string open_file = fmt::format("/proc/self/fd/{}", descriptor);
    const fs::path real = fs::read_symlink(open_file);
    const bool own = is_own_file(real, model_dir_);
    write_file(call, copy, [&] {
      std::error_code error;
      if (own) {
        fs::copy_file(open_file, copy, fs::copy_options::overwrite_existing, error);
      } else {  // the server reads it where it is
        fs::remove(copy, error);
        fs::create_symlink(real, copy, error);
      }
      return error.value();
    });
  }
  fs::remove_all(dir_);
  fs::rename(part_, dir_);
  return dir_;
}

bool has_weights(const fs::path& dir) {
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".bin")) return true;
  }
  return false;
}

}  // namespace hexad::bridge
