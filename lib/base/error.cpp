#include "lib/base/error.hpp"

#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/base/utf8.hpp"

namespace hexad {
namespace {

std::string safe(const std::string& message) {
  std::string buffer;
  return printable(without_secrets(valid_utf8(message, buffer)));
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(safe(message)), kind_(kind) {}

int Error::exit_code() const {
  switch (kind_) {
    case ErrorKind::config:
    case ErrorKind::data: return 2;
    case ErrorKind::plugin: return 3;
    case ErrorKind::worker: return 4;
    case ErrorKind::internal: return 1;
  }
  return 1;
}

}  // namespace hexad
