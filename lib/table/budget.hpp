// How much of a data set is held in memory.
#pragma once
#include <cstdint>

namespace hexad::table {

// Bytes of rows that may still be. What is beyond them is written into the cache, and mapped or read from there.
struct Budget {
  int64_t left = int64_t{64} << 20;
};

}  // namespace hexad::table
