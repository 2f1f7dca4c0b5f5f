// Exceptions out of libraries that have an unwinder of their own.
#pragma once

namespace hexad {

// libgcc_s sets itself up when it first throws. A library that has a copy of it linked in (-static-libgcc) throws past
// it, and the first catch of this program would then abort. Call it before a stranger's code runs.
inline void set_up_unwinder() {
  try {
    throw 0;
  } catch (int) {
  }
}

}  // namespace hexad
