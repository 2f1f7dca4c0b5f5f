// The engine's own host table, with a log that tests can read.
#pragma once
#include <hexad/services.hpp>

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"

namespace bridge_test {

// What the plugin has logged, of all generators of this program.
class LogLines {
 public:
  static LogLines& all() {
    static LogLines lines;
    return lines;
  }
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }
  bool has(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    for (const std::string& line : lines_) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline const hexad_host* logging_host() {
  static const hexad_host host = [] {
    hexad_host copy = *hexad::plugin::host_table(nullptr);
    copy.log_enabled = [](int32_t) -> int32_t { return 1; };
    copy.log = [](hexad_call*, int32_t, const char* text, uint64_t size) {
      LogLines::all().add(std::string(text, size));
    };
    return copy;
  }();
  return &host;
}

// A call of that host, whose tokenizer has a letter for each token.
struct HostCall {
  hexad::plugin::CallContext context;
  hexad::plugin::Call call{context, "test"};

  HostCall() {
    context.detokenize = [](std::span<const int32_t> ids) {
      std::string text;
      for (const int32_t id : ids) text += static_cast<char>('a' + id % 26);
      return text;
    };
  }
  hexad::sdk::Call service() { return {logging_host(), call.handle()}; }
};

}  // namespace bridge_test
