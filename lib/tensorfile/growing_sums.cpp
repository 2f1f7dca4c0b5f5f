#include "lib/tensorfile/growing_sums.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "lib/base/background.hpp"
#include "lib/base/sha256.hpp"
#include "lib/tensorfile/growing_name.hpp"

namespace hexad::tensorfile {
namespace {

namespace fs = std::filesystem;

// A file that grows. Its writer renames it before it writes anywhere but at the end: bytes that were read count where
// it still grows afterwards, or had its name, as what is whole, before.
class Followed {
 public:
  Followed(fs::path file, int descriptor) : file_(std::move(file)), descriptor_(descriptor) {
    is_followed_ = ::fstat(descriptor_, &first_) == 0 && S_ISREG(first_.st_mode);
  }
  ~Followed() { ::close(descriptor_); }
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;

  const fs::path& file() const { return file_; }

  // Adds what has come, as long as `ends` is false; whether there was any.
  bool advance(std::vector<std::byte>& buffer, const std::atomic<bool>& ends) {
    const uint64_t before = size_;
    while (is_followed_ && !ends) {
      const bool is_whole = is_named(file_);
      is_followed_ = is_whole || is_named(growing_name(file_));
      if (!is_followed_) break;
      const ssize_t got = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(size_));
      if (got == 0) break;
      if (got < 0 && errno != EINTR) is_followed_ = false;
      if (got < 0 || (!is_whole && !is_named(growing_name(file_)))) continue;
      sum_.add(std::span(buffer).first(static_cast<size_t>(got)));
      size_ += static_cast<uint64_t>(got);
    }
    return size_ > before;
  }

  // When the writer has finished, and all was added.
  std::optional<GrownFile> whole() {
    struct stat now {};
    if (!is_followed_ || !is_named(file_) || ::fstat(descriptor_, &now) != 0) return std::nullopt;
    if (static_cast<uint64_t>(now.st_size) != size_) return std::nullopt;
    return GrownFile{size_, sum_.hex()};
  }

 private:
  bool is_named(const fs::path& name) const {
    struct stat now {};
    return ::lstat(name.c_str(), &now) == 0 && now.st_ino == first_.st_ino && now.st_dev == first_.st_dev;
  }

  fs::path file_;
  int descriptor_;
  struct stat first_ {};
  bool is_followed_ = false;
  uint64_t size_ = 0;
  Sha256 sum_;
};

using Files = std::map<fs::path, std::unique_ptr<Followed>>;

void add_new(const fs::path& folder, Files& files) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::optional<fs::path> file = grown_name(at->path());
    if (!file || files.contains(*file)) continue;
    const int descriptor = ::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor >= 0) files.emplace(*file, std::make_unique<Followed>(*file, descriptor));
  }
}

}  // namespace

GrowingSums::GrowingSums(std::vector<fs::path> folders) : folders_(std::move(folders)), thread_([this] { run(); }) {}

GrowingSums::~GrowingSums() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

std::map<fs::path, GrownFile> GrowingSums::finish() {
  are_whole_ = true;
  thread_.join();
  return std::move(sums_);
}

void GrowingSums::run() {
  constexpr auto kPause = std::chrono::milliseconds(5);
  constexpr size_t kPart = size_t{1} << 20;
  give_way();
  Files files;
  std::vector<std::byte> buffer(kPart);
  while (!ends_) {
    const bool is_last = are_whole_;  // asked for before the files are looked at
    if (!is_last)
      for (const fs::path& folder : folders_) add_new(folder, files);
    bool have_grown = false;
    for (const auto& [name, file] : files) have_grown |= file->advance(buffer, ends_);
    if (is_last) break;
    if (!have_grown) std::this_thread::sleep_for(kPause);
  }
  for (const auto& [name, file] : files)
    if (const auto whole = ends_ ? std::nullopt : file->whole()) sums_[name] = *whole;
}

}  // namespace hexad::tensorfile
