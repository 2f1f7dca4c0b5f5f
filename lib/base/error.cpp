#include "lib/base/error.hpp"

namespace hexad {

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
