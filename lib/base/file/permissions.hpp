// Whether a file may be believed or loaded: only its owner and root can have changed it, or what its name leads to.
#pragma once
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

namespace hexad {

// Goes the way of a file's name step by step, as the system does, each step from the folder that is open by then: every
// folder and every link on the way, those of links' targets among them, and the file. Each must belong to root or to
// the effective user and, as sshd's strict modes have it, must not be writable by group or others. A group whose only
// member is the user counts as the user. A folder that is merely passed may be writable if it is sticky (/tmp): there
// nobody can replace another's entry. One that holds the file, or the link that the name ends with, may not: who can
// add files there can add what is looked for beside this one. Returns what is wrong, with path, owner and mode, or
// nothing.
std::optional<std::string> insecure(const std::filesystem::path& file);

// The same of a folder in which files are looked for: whether others could put one there. Of a folder that is not there
// it is whether others could make it.
std::optional<std::string> insecure_folder(const std::filesystem::path& folder);

// What is wrong with one file, folder or link that is open (O_PATH will do), without its name: "is writable by everyone
// (mode 0777)"; "" if nothing. `holder`: it is the file, or a folder that holds what the name means.
std::string writable_by_others(int descriptor, const struct stat& status, bool holder);

}  // namespace hexad
