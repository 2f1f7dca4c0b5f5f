// Lines of the log, which quote what strangers wrote.
#pragma once
#include <memory>

#include <spdlog/formatter.h>

namespace hexad {

// spdlog's usual line: time, name, level, text. Its text has no secrets (secret.hpp) and no characters that a terminal
// obeys, and lines of it after the first are indented (printable.hpp): none passes for a line of the log.
std::unique_ptr<spdlog::formatter> log_format();

}  // namespace hexad
