// Part of each plugin that holds a libstdc++ of its own. Where that was built with glibc 2.36 or later (Debian 12) its
// std::random_device asks glibc for this function, and the plugin could not be loaded on a machine with an older one
// (Ubuntu 22.04), though it draws nothing. Here it is the plugin's own.
#include <unistd.h>

extern "C" unsigned arc4random() noexcept {
  unsigned value = 0;
  while (::getentropy(&value, sizeof value) != 0) {
  }
  return value;
}
