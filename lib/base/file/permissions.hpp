// Whether a plugin's file may be loaded: only its owner and root can have changed it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hexad {

// Looks at the real path of a file and of all its parents, as sshd's strict modes do: each must belong to root or to
// the effective user, and the file and the directory that holds it must not be writable by group or others. A group
// whose only member is the user counts as the user. A directory further up may be writable, if it is sticky (/tmp):
// there nobody can replace another's entry. Returns what is wrong, with path, owner and mode, or nothing.
std::optional<std::string> insecure(const std::filesystem::path& file);

}  // namespace hexad
