// The `normalizer` of a tokenizer.json: text to text, before it is split.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"

namespace hexad::text {

// Bytes that the steps of a tokenizer.json, which may be a stranger's, make of a text of so many at the most. Real ones
// make a few times as many; one that replaces "a" by a thousand of them could be asked for six times in a row.
constexpr size_t most_made(size_t bytes) { return (size_t{1} << 20) + 32 * bytes; }

// A text on its way through the normalizers. The view is the input itself until something changes.
struct NormalizedText {
  std::string_view text;
  // Bytes at the front that come from the first character of the whole input (0: the input's start is elsewhere).
  // Metaspace with prepend_scheme "first" asks for it.
  size_t from_start = 0;
  std::string buffers[2];
  int next_buffer = 0;
  size_t room = most_made(0);  // bytes that the text may have

  // Throws Error(data), "<where>: ...", for a text of so many bytes where there is no room.
  void require_room(size_t bytes, const std::string& where) const;

  // An empty buffer to write the next text to; `text` stays valid until the call after.
  std::string& fresh() {
    std::string& buffer = buffers[next_buffer];
    next_buffer ^= 1;
    buffer.clear();
    return buffer;
  }
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Valid UTF-8 in and out; any thread.
  virtual void apply(NormalizedText& text) const = 0;
};

std::unique_ptr<Normalizer> make_normalizer(const Component& component);

}  // namespace hexad::text
