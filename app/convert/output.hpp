// A directory, or a file, that appears under its name only when it is complete.
#pragma once
#include <filesystem>
#include <string_view>

namespace hexad::convert {

// Files go into a new directory beside `destination`; commit() flushes it and gives it that name, or commit_file() one
// file of it. Without them (an error, a signal's exception) the directory is removed again.
class ConvertOutput {
 public:
  enum class Makes { directory, file };

  // Fails when `destination` exists and is not an empty directory (for a file: exists), or its parent cannot be
  // written.
  explicit ConvertOutput(const std::filesystem::path& destination, Makes makes = Makes::directory);
  ~ConvertOutput();
  ConvertOutput(const ConvertOutput&) = delete;
  ConvertOutput& operator=(const ConvertOutput&) = delete;

  const std::filesystem::path& directory() const { return directory_; }  // where to write
  void write_text(std::string_view file, std::string_view text) const;
  void commit();
  void commit_file(std::string_view file);

 private:
  void give_name(const std::filesystem::path& from) const;

  std::filesystem::path destination_, directory_;
  Makes makes_;
};

}  // namespace hexad::convert
