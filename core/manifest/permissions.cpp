#include "core/manifest/permissions.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace hexad::plugin {
namespace {

// What is wrong with one file or directory. `holder`: it is the file or the directory that holds it.
std::optional<std::string> insecure_entry(const std::filesystem::path& path, bool holder) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return fmt::format("{}: {}", path.string(), std::strerror(errno));
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return fmt::format("{} belongs to user {}, wanted root or user {}", path.string(), info.st_uid, geteuid());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::nullopt;
  if (!holder && (info.st_mode & S_ISVTX)) return std::nullopt;
  return fmt::format("{} is writable by {} (mode {:04o})", path.string(),
                     info.st_mode & S_IWOTH ? "everyone" : "its group", info.st_mode & 07777);
}

}  // namespace

std::optional<std::string> insecure(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  if (error) return fmt::format("{}: {}", file.string(), error.message());
  const std::filesystem::path folder = real.parent_path();
  for (std::filesystem::path path = real;; path = path.parent_path()) {
    if (auto problem = insecure_entry(path, path == real || path == folder)) return problem;
    if (path == path.root_path()) return std::nullopt;
  }
}

}  // namespace hexad::plugin
