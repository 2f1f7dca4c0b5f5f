#include "lib/http/client/event_stream.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace hexad::http::client {
namespace {

// What a server that never ends an event would have us keep.
void require_short(size_t bytes) {
  constexpr size_t kMostEvent = size_t{64} << 20;  // bytes; one of 100,000 tokens has a tenth of that
  if (bytes > kMostEvent)
    throw std::runtime_error(fmt::format("an event of the stream is longer than {} MiB", kMostEvent >> 20));
}

}  // namespace

void EventStream::feed(std::string_view bytes, const std::function<bool(std::string_view data)>& take) {
  constexpr std::string_view kField = "data:";
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    std::string_view line = bytes.substr(0, end);
    require_short(line_.size() + data_.size() + line.size());
    if (!line_.empty()) line = line_.append(line);
    bytes.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kField)) {
      line.remove_prefix(kField.size());
      if (line.starts_with(' ')) line.remove_prefix(1);
      if (!data_.empty()) data_ += '\n';
      data_ += line;
    } else if (line.empty() && !data_.empty()) {
      line_.clear();
      const bool more = take(data_);
      data_.clear();
      if (!more) return;
    }
    line_.clear();
  }
  require_short(line_.size() + data_.size() + bytes.size());
  line_.append(bytes);
}

}  // namespace hexad::http::client
