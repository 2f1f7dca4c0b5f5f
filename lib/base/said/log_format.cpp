#include "lib/base/said/log_format.hpp"

#include <ctime>

#include <spdlog/pattern_formatter.h>

#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"

namespace hexad {
namespace {

class Text : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = indented(without_secrets({message.payload.data(), message.payload.size()}));
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<Text>(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> log_format() {
  auto format = std::make_unique<spdlog::pattern_formatter>();
  format->add_flag<Text>('*').set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%n] [%^%l%$] %*");
  return format;
}

}  // namespace hexad
