#include "lib/table/packed_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/file/open_file.hpp"
#include "lib/table/arrow_library.hpp"
#include "lib/table/cache.hpp"
#include "lib/table/part.hpp"

namespace hexad::table {
namespace {

namespace fs = std::filesystem;

// What ends a kept text: its size, by which one that was cut is known.
constexpr int64_t kEnd = 24;
std::string end_of(int64_t size) { return fmt::format("\nsize{:>19}", size); }

class KeptBytes : public TextBytes {
 public:
  explicit KeptBytes(std::unique_ptr<TextBytes> file) : file_(std::move(file)) {}
  bool is_whole() const {
    if (file_->size() < kEnd) return false;
    std::string end(kEnd, '\0');
    file_->read(size(), end);
    return end == end_of(size());
  }
  int64_t size() const override { return file_->size() - kEnd; }
  void read(int64_t offset, std::span<char> bytes) const override { file_->read(offset, bytes); }

 private:
  std::unique_ptr<TextBytes> file_;
};

// The text that is kept already, or null. One that is damaged is removed, to be made anew. It is held open: a run that
// finds the packed file written anew removes it.
std::unique_ptr<TextBytes> kept(const Place& place, const fs::path& file) {
  std::error_code failed;
  if (place.file.empty() || !fs::exists(place.file, failed)) return nullptr;
  try {
    auto bytes = std::make_unique<KeptBytes>(held_bytes(place.file, file));
    if (bytes->is_whole()) return bytes;
  } catch (const Error&) {
    return nullptr;  // another run has removed it by now
  }
  fs::remove(place.file, failed);
  return nullptr;
}

// Takes the bytes: into memory, and all of them into a file where they are more than fit.
class Sink {
 public:
  Sink(const Place& place, int64_t memory) : place_(place), memory_(memory) {}
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // 0, or an errno, with the reason in said().
  int take(std::string_view bytes) {
    try {
      if (descriptor_ < 0) text_ += bytes;
      if (descriptor_ < 0 && static_cast<int64_t>(text_.size()) <= memory_) return 0;
      if (descriptor_ >= 0) return write(bytes);
      open_file();
      return descriptor_ < 0 ? errno : write(std::exchange(text_, {}));
    } catch (const std::exception& error) {
      said_ = error.what();
      return ECANCELED;
    }
  }
  // All have been taken: 0, or an errno.
  int finish() {
    if (descriptor_ < 0) return 0;
    if (const int unwritten = write(end_of(written_))) return unwritten;
    const int closed = ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
    return closed != 0 ? closed : part_->rename();
  }
  bool is_file() const { return part_.has_value(); }
  std::string text() { return std::move(text_); }
  // Why no file could be begun, or what was said in the place of that.
  std::string& said() { return said_; }

 private:
  void open_file() {
    prepare(place_);
    part_.emplace(place_.file.string());
    descriptor_ = open_to_write(part_->path().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  int write(std::string_view bytes) {
    written_ += std::ssize(bytes);
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return errno;
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    }
    return 0;
  }

  const Place& place_;
  int64_t memory_, written_ = 0;
  std::string text_, said_;
  std::optional<Part> part_;
  int descriptor_ = -1;
};

int take(void* sink, const char* bytes, size_t size) { return static_cast<Sink*>(sink)->take({bytes, size}); }

int say(void* sink, const char* bytes, size_t size) {
  std::string& said = static_cast<Sink*>(sink)->said();
  if (said.empty()) said.assign(bytes, size);
  return 0;
}

}  // namespace

std::unique_ptr<TextBytes> unpacked_bytes(const fs::path& file, Packing packing, Budget& budget) {
  const Container container{Form::json, packing};
  const Place place = place_for(file, container, ".text");
  if (auto bytes = kept(place, file)) return bytes;
  Sink sink(place, budget.left);
  const int refused = arrow_for(file).unpack(file.c_str(), name_of(packing), take, say, &sink);
  if (place_for(file, container, ".text").file != place.file)
    fail(ErrorKind::data, "{}: it has been written anew while it was unpacked", file.string());
  const int unfinished = refused ? 0 : sink.finish();
  if (refused || unfinished)
    fail(ErrorKind::data, "{}: cannot be unpacked{}: {}", file.string(),
         sink.is_file() ? " to " + place.file.string() + " (HEXAD_CACHE names another folder)" : "",
         refused ? sink.said() : std::strerror(unfinished));
  if (sink.is_file()) return std::make_unique<KeptBytes>(held_bytes(place.file, file));
  std::string text = sink.text();
  budget.left -= static_cast<int64_t>(text.size());
  return bytes_of_text(std::move(text));
}

}  // namespace hexad::table
