// TensorBoard event files: scalars that `tensorboard --logdir` shows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/file/append_file.hpp"

namespace hexad::tensorboard {

// Writes events.out.tfevents.<seconds>.<host> into a directory. One thread. Throws as AppendFile
// does, and holds whole events then too.
class EventFile {
 public:
  explicit EventFile(const std::filesystem::path& directory);

  // One event with a summary value for every number of a step; on disk when it returns.
  void write(int64_t step, double wall_time, const std::map<std::string, double>& scalars);

 private:
  void record(const std::string& event);

  std::optional<AppendFile> out_;
};

// CRC-32C (Castagnoli), rotated and offset as TFRecord files hold it.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace hexad::tensorboard
