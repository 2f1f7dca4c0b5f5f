// The engine's host table with instruments: it counts, it fails a chosen call, and it can look older or newer.
#pragma once
#include <hexad/abi.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hexad::verify {

// One at a time in a process, because services without a call argument have nothing else to find it by.
// Any thread may call the table.
class OverlayHost {
 public:
  // `size`: bytes of the table that the plugin may see (an older host); behind them stands poison, which faults when it
  // is called. 0: all. `grown`: as if a later minor had appended functions, which are poison too.
  explicit OverlayHost(const hexad_host* real, uint64_t size = 0, bool grown = false);
  OverlayHost(const OverlayHost&) = delete;
  OverlayHost& operator=(const OverlayHost&) = delete;

  // Valid until the process ends, as a host table has to be.
  const hexad_host* table() const { return table_; }

  // The n-th fallible service call from now on fails with RESOURCE_EXHAUSTED and a text; 0: none.
  void fail_at(int64_t n);
  bool tripped() const;                 // whether it has
  std::string tripped_service() const;  // its name

  // What plugins hold of the host's memory: alloc without free, tensor_new without its deleter.
  int64_t live() const;

  // The keys that leaf readers asked for, with "int", "number", "bool" or "text"; each once, in order.
  std::vector<std::pair<std::string, std::string>> keys() const;

 private:
  const hexad_host* table_ = nullptr;
};

}  // namespace hexad::verify
