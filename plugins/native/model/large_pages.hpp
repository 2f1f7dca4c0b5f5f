// Large pages for memory that is read all over, again and again: addresses are looked up in a table, which in pages of
// 4 KiB outgrows the processor's caches.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hexad::native {

// Asks for them in the whole pages of [begin, begin + bytes), which is best untouched yet; a wish that a system without
// them does not grant. What is never touched still takes no memory, but for the rest of its large page.
inline void prefer_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace hexad::native
