#include "lib/base/file/permissions.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "lib/base/file/walk.hpp"

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

// The same, asked once in a row: the folders of a way are mostly of one group, and users are many.
bool is_users_own(gid_t group, uid_t user) {
  struct Asked {
    gid_t group;
    uid_t user;
    bool answer;
  };
  thread_local std::optional<Asked> last;
  if (!last || last->group != group || last->user != user) last = Asked{group, user, is_private_group(group, user)};
  return last->answer;
}

// Whether it gives users by name a right of their own (an access control list): its mode then says of the group what is
// the most that any of them may.
bool has_list(int descriptor) {
  const std::string open_file = fmt::format("/proc/self/fd/{}", descriptor);
  return ::getxattr(open_file.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

}  // namespace

std::string writable_by_others(int descriptor, const struct stat& status, bool holder) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return fmt::format("belongs to user {}, wanted root or user {}", status.st_uid, ::geteuid());
  if (S_ISLNK(status.st_mode) || (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  const bool everyone = status.st_mode & S_IWOTH;
  if (!everyone && is_users_own(status.st_gid, ::geteuid()) && !has_list(descriptor)) return "";
  if (!holder && (status.st_mode & S_ISVTX)) return "";
  return fmt::format("is writable by {} (mode {:04o})", everyone ? "everyone" : "its group", status.st_mode & 07777);
}

std::optional<std::string> insecure(const std::filesystem::path& file) {
  const Walk walk(file);
  if (walk.reason() != 0) return fmt::format("{}: {}", file.string(), std::strerror(walk.reason()));
  return walk.insecure(false);
}

std::optional<std::string> insecure_folder(const std::filesystem::path& folder) { return Walk(folder).insecure(true); }

}  // namespace hexad
