// Whole files as locks between programs. They belong to an open file: the system lets them go when all its descriptors
// are closed, in whatever way a process ends. Whether one is held can be asked without taking it, which flock(2) cannot
// tell: a program that asks would keep one that starts at that moment from its lock.
#pragma once
#include <fcntl.h>

namespace hexad {

// Takes the lock of a file that is open to be written, and waits for nobody. False, and errno, where that fails: EAGAIN
// where somebody else has it, others where the file system has no locks.
inline bool take_lock(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK, whole.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_SETLK, &whole) == 0;
}

// Whether somebody else has it; false where that cannot be told.
inline bool is_locked(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK, whole.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

}  // namespace hexad
