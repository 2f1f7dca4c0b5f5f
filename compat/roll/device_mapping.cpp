#include "compat/roll/pass.hpp"

#include <algorithm>
#include <set>

namespace hexad::config::roll {
namespace {

constexpr size_t kMostDevices = 1'000'000;

// sum := term {'+' term}; term := items | 'list(' items ')'; items := '[' numbers ']' | 'range(' numbers ')'.
class MappingParser {
 public:
  explicit MappingParser(const std::string& text) {
    for (const char c : text) {
      if (c != ' ' && c != '\t' && c != '\n') text_ += c;
    }
  }

  std::optional<std::vector<int64_t>> run() {
    do {
      if (!term()) return std::nullopt;
    } while (take("+"));
    if (at_ != text_.size()) return std::nullopt;
    return devices_;
  }

 private:
  bool take(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }

  bool term() {
    if (take("list(")) return (list() || range()) && take(")");
    return list() || range();
  }

  bool list() {
    if (!take("[")) return false;
    const std::optional<std::vector<int64_t>> items = numbers("]");
    if (items) devices_.insert(devices_.end(), items->begin(), items->end());
    return items.has_value() && devices_.size() <= kMostDevices;
  }

  bool range() {
    if (!take("range(")) return false;
    const std::optional<std::vector<int64_t>> bounds = numbers(")");
    if (!bounds || bounds->empty() || bounds->size() > 3) return false;
    const int64_t first = bounds->size() == 1 ? 0 : (*bounds)[0], step = bounds->size() == 3 ? (*bounds)[2] : 1;
    const int64_t end = bounds->size() == 1 ? (*bounds)[0] : (*bounds)[1];
    if (step < 1) return false;
    for (int64_t device = first; device < end; device += step) {
      if (devices_.size() == kMostDevices) return false;
      devices_.push_back(device);
    }
    return true;
  }

  // Numbers and commas up to `close`.
  std::optional<std::vector<int64_t>> numbers(const std::string& close) {
    std::vector<int64_t> result;
    while (!take(close)) {
      if (!result.empty() && !take(",")) return std::nullopt;
      if (!result.empty() && take(close)) return result;
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < 9) ++at_;
      if (at_ == begin || result.size() == kMostDevices) return std::nullopt;
      result.push_back(std::stoll(text_.substr(begin, at_ - begin)));
    }
    return result;
  }

  std::string text_;
  size_t at_ = 0;
  std::vector<int64_t> devices_;
};

std::optional<std::vector<int64_t>> listed(const yaml::Node& list) {
  std::vector<int64_t> devices;
  for (const yaml::Node& item : list.items()) {
    if (!item.is_int() || item.as_int() < 0) return std::nullopt;
    devices.push_back(item.as_int());
  }
  return devices;
}

}  // namespace

std::optional<std::vector<int64_t>> device_mapping(const yaml::Node& value) {
  std::optional<std::vector<int64_t>> devices;
  if (value.is_list()) devices = listed(value);
  if (value.is_string()) devices = MappingParser(value.as_string()).run();
  if (!devices || devices->empty()) return std::nullopt;
  if (std::set<int64_t>(devices->begin(), devices->end()).size() != devices->size()) return std::nullopt;
  return devices;
}

}  // namespace hexad::config::roll
