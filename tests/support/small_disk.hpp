// A disk of a test's own, to be filled.
#pragma once
#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <string>

// A tmpfs of so many bytes, mounted for this process alone while it lives. It takes a privilege that not every machine
// gives: false where there is none.
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path place, size_t bytes) : place_(std::move(place)) {
    std::filesystem::create_directories(place_);
    const std::string options = "size=" + std::to_string(bytes);
    mounted_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("none", place_.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  explicit operator bool() const { return mounted_; }

  // Leaves nothing free, and free() all of that again.
  void fill() const {
    std::ofstream out(place_ / "filling", std::ios::binary);
    while (out << std::string(512, 'x') << std::flush) {
    }
  }
  void free() const { std::filesystem::remove(place_ / "filling"); }

 private:
  std::filesystem::path place_;
  bool mounted_ = false;
};
