// A checksum of a weight's bits and their places, as the native generator reports it with its layout.
#pragma once
#include <cstdint>

#include <hexad/abi.h>

namespace hexad::cluster {

// Of a contiguous host tensor seen as a matrix of its first dimension by the others: the sum over rows i and columns j
// of its bits, as a signed integer of its width, times (1 + i + 1000003 j), modulo 2^48 (a double holds it). The width
// is 16, 32 or 64 bits.
int64_t weight_sum(const DLTensor& weight);

}  // namespace hexad::cluster
