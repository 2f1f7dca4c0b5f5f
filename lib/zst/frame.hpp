// Texts as frames of zstd, which the program `zstd` reads too.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct ZSTD_CCtx_s;

namespace hexad::zst {

// One frame, made bit by bit: memory does not grow with the text. Throws std::bad_alloc.
class Frame {
 public:
  // `take` is handed the frame's bytes in order.
  explicit Frame(std::function<void(std::string_view)> take);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  void add(std::string_view text);
  // The last of the frame, with a checksum of the text.
  void end();

 private:
  void pass(std::string_view text, bool is_last);

  std::function<void(std::string_view)> take_;
  ZSTD_CCtx_s* context_;
  std::string out_;
};

// The text of the frames of a file, part by part until `take` returns false: memory does not grow with it. A frame that
// was cut off (its writer was killed) or is damaged gives what comes before that. Throws Error(data) if the file cannot
// be read.
void each_part(const std::filesystem::path& file, const std::function<bool(std::string_view)>& take);

}  // namespace hexad::zst
