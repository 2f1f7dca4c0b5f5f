// A new folder that is its user's alone, until the object goes.
#pragma once
#include <string>

namespace hexad::process {

class PrivateFolder {
 public:
  // NAME-XXXXXX in the folder for temporary files (TMPDIR, or /tmp). Throws std::system_error.
  explicit PrivateFolder(const std::string& name);
  // Removes it with all that is in it, whatever modes that was given; links are not followed.
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hexad::process
