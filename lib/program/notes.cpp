#include "lib/program/notes.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "lib/base/text.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::program {
namespace {

constexpr size_t kMostNote = 400, kMostTail = 1500;

}  // namespace

std::string readable(std::string_view text) {
  std::string buffer, result(valid_utf8(text, buffer));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return result;
}

void Notes::open(process::Descriptor from) {
  from_ = std::move(from);
  from_.never_wait();
}

void Notes::read(short revents) {
  char bytes[4096];
  for (int i = 0; i < 16 && from_; ++i) {  // one that never stops writing must not keep us here
    const ssize_t count = ::read(from_.get(), bytes, sizeof bytes);
    if (count <= 0) break;
    add({bytes, static_cast<size_t>(count)});
  }
  if (revents && !(revents & POLLIN)) from_.close();  // it closed it
}

void Notes::add(std::string_view text) {
  tail_.append(text);
  tail_ = utf8_back(tail_, kMostTail);
  for (const char c : text) {
    if (c != '\n') {
      if (note_.size() < kMostNote) note_ += c;
      continue;
    }
    const int64_t left = log_lines_--;
    if (left > 0) spdlog::info("{}: {}", who_, readable(utf8_front(note_, kMostNote - 1)));
    if (left == 1) spdlog::info("{}: the next lines are left out", who_);
    note_.clear();
  }
}

std::string Notes::tail() const { return readable(trimmed(tail_)); }

std::string Notes::last_line() const {
  const std::string_view all = trimmed(tail_);
  return readable(trimmed(all.substr(all.rfind('\n') + 1)));
}

}  // namespace hexad::program
