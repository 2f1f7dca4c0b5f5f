// Large memory: how it is asked for, and that it goes back to the system, or to the device's driver, when its tensor
// goes.
#pragma once
#include <ATen/Functions.h>

#include <cstddef>
#include <memory>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "plugins/native/cuda/decode/pool.hpp"

namespace hexad::native {

// Asks for large pages in the whole pages of [begin, begin + bytes), for memory that is read all over, again and again:
// addresses are looked up in a table, which in pages of 4 KiB outgrows the processor's caches. The memory is best
// untouched yet. A system without large pages does not grant the wish. What is never touched still takes no memory, but
// for the rest of its large page.
inline void prefer_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr size_t kPage = 4096;
  void* first = begin;
  size_t left = bytes;
  if (!std::align(kPage, kPage, first, left)) return;
  madvise(first, left / kPage * kPage, MADV_HUGEPAGE);
#endif
}

// Untouched. `what`: "the KV cache needs", for the error. Throws c10::OutOfMemoryError on a GPU.
inline at::Tensor own_memory(at::IntArrayRef shape, at::ScalarType dtype, at::Device device, const char* what) {
  if (device.is_cuda()) return cuda::pool_tensor(shape, dtype, device, what);
  const at::Tensor memory = at::empty(shape, at::TensorOptions(dtype).device(device));
  prefer_large_pages(memory.data_ptr(), memory.nbytes());
  return memory;
}

}  // namespace hexad::native
