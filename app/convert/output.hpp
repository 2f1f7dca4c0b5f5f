// A directory that appears under its name only when it is complete.
#pragma once
#include <filesystem>
#include <string_view>

namespace hexad::convert {

// Files go into a new directory beside `destination`; commit() flushes it and gives it that name. Without commit() (an
// error, a signal's exception) the directory is removed again.
class ConvertOutput {
 public:
  // Fails when `destination` exists and is not an empty directory, or its parent cannot be written.
  explicit ConvertOutput(const std::filesystem::path& destination);
  ~ConvertOutput();
  ConvertOutput(const ConvertOutput&) = delete;
  ConvertOutput& operator=(const ConvertOutput&) = delete;

  const std::filesystem::path& directory() const { return directory_; }  // where to write
  void write_text(std::string_view file, std::string_view text) const;
  void commit();

 private:
  std::filesystem::path destination_, directory_;
};

}  // namespace hexad::convert
