#include "lib/base/said/once.hpp"

#include <mutex>
#include <set>

namespace hexad {

bool first_time(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  return said.insert(text).second;
}

}  // namespace hexad
