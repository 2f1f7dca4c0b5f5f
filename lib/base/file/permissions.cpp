#include "lib/base/file/permissions.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace hexad {
namespace {

// Whether the group's only member is the user: many systems give every user such a group, and umask 002.
bool is_private_group(gid_t group, uid_t user) {
  const struct group* known = ::getgrgid(group);
  const passwd* own = ::getpwuid(user);
  // In a container neither may have a name. The numbers are then all that is known, and equal by the same habit.
  if (!known) return group == user;
  if (!own) return false;
  const std::string name = own->pw_name;
  const bool has_users_name = name == known->gr_name;
  bool has_user = own->pw_gid == group;
  for (char** member = known->gr_mem; *member; ++member) {
    if (name != *member) return false;
    has_user = true;
  }
  // Others may have it as their first group. A directory service may not list its users: then the name has to tell.
  bool lists_user = false, is_shared = false;
  ::setpwent();
  while (const passwd* each = ::getpwent()) {
    is_shared |= each->pw_gid == group && each->pw_uid != user;
    lists_user |= each->pw_uid == user;
  }
  ::endpwent();
  return has_user && !is_shared && (lists_user || has_users_name);
}

// What is wrong with one file or directory. `holder`: it is the file or the directory that holds it.
std::optional<std::string> insecure_entry(const std::filesystem::path& path, bool holder) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return fmt::format("{}: {}", path.string(), std::strerror(errno));
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return fmt::format("{} belongs to user {}, wanted root or user {}", path.string(), info.st_uid, geteuid());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return std::nullopt;
  if (!(info.st_mode & S_IWOTH) && is_private_group(info.st_gid, geteuid())) return std::nullopt;
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

}  // namespace hexad
