#include "app/console/log.hpp"

#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "app/console/console.hpp"
#include "lib/base/said/log_format.hpp"

namespace hexad::console {
namespace {

std::mutex shown_mutex;
RunConsole* shown = nullptr;

Mark mark_of(spdlog::level::level_enum level) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(level);
  const std::string word(name.data(), name.size());
  return {word, level >= spdlog::level::err ? Style::red : level == spdlog::level::warn ? Style::yellow : Style::dim};
}

// Any thread logs.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Sink() : plain_(std::make_shared<spdlog::sinks::stderr_color_sink_mt>()) {
    // Its own rule is another one.
    plain_->set_color_mode(shows_colours(stderr) ? spdlog::color_mode::always : spdlog::color_mode::never);
    plain_->set_formatter(log_format());
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::lock_guard guard(shown_mutex);
    if (!shown) return plain_->log(message);
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    while (line.size() > 0 && line.data()[line.size() - 1] == '\n') line.resize(line.size() - 1);
    shown->above({line.data(), line.size()}, {mark_of(message.level)});
  }
  void flush_() override { plain_->flush(); }

 private:
  std::shared_ptr<spdlog::sinks::stderr_color_sink_mt> plain_;
};

}  // namespace

void log_to_standard_error(const char* name) {
  auto log = std::make_shared<spdlog::logger>(name, std::make_shared<Sink>());
  log->set_formatter(log_format());
  spdlog::set_default_logger(std::move(log));
}

void show_log_above(RunConsole* console) {
  const std::lock_guard guard(shown_mutex);
  shown = console;
}

}  // namespace hexad::console
