// Which libraries the system's loader gives to a shared object.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hexad::doctor {

struct LinkedLibrary {
  std::string name;  // as it is asked for: "libc10.so"
  std::string path;  // empty: it is not found
};

struct Linked {
  std::vector<LinkedLibrary> libraries;  // those that it needs, and that these need
  std::string problem;                   // why the loader does not say; else empty

  // The library whose name begins so ("libnccl.so"); null: it is not needed.
  const LinkedLibrary* find(std::string_view name) const;
};

// Asks the loader of this program, as ldd does: it maps the files in a process of its own, with our environment, and
// runs none of their code. Ten seconds at most. `folders`: where a worker has opened libraries of before.
Linked linked(const std::filesystem::path& library, const std::vector<std::filesystem::path>& folders = {});

// The version of a library: what stands behind ".so." in its file's own name if that has two points or more, else the
// numbers that a header defines by these names, in a folder include/ of its own folder or of the two above it; empty
// where neither is there.
std::string version_of(const std::filesystem::path& library, const std::string& header,
                       const std::vector<std::string>& names);

}  // namespace hexad::doctor
