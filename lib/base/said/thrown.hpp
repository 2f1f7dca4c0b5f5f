// Exceptions out of libraries of strangers.
#pragma once
#include <string>

namespace hexad {

// libgcc_s sets itself up when it first throws. A library that has a copy of it linked in (-static-libgcc) throws past
// it, and the first catch of this program would then abort. Call it before a stranger's code runs.
inline void set_up_unwinder() {
  try {
    throw 0;
  } catch (int) {
  }
}

// In a catch block: what was thrown, on a few kilobytes at most. The text of an exception, with those that are nested
// in it behind colons, or a text that was thrown itself; of what has none its type: "an exception of type int".
std::string thrown_text();

}  // namespace hexad
