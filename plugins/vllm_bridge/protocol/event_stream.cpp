#include "plugins/vllm_bridge/protocol/event_stream.hpp"

namespace hexad::vllm {

void EventStream::feed(std::string_view bytes, const std::function<bool(std::string_view data)>& take) {
  constexpr std::string_view kField = "data:";
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    std::string_view line = bytes.substr(0, end);
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
  line_.append(bytes);
}

}  // namespace hexad::vllm
