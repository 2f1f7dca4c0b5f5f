// The bytes of a weight in host memory, wherever it lies: CUDA memory through the driver, which is looked for at run
// time.
#pragma once
#include <hexad/services.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace hexad::refit {

size_t byte_size(const DLTensor& tensor);

// Of a contiguous tensor. `memory` holds them if they had to be copied; the copy waits for the call's stream.
std::span<const std::byte> on_host(const sdk::Call& call, const DLTensor& tensor, std::vector<std::byte>& memory);

}  // namespace hexad::refit
