// Lists of weight slices on the wire, in both directions: buckets with data on the way down, layouts on the way up.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/plugin/confined/wire.hpp"

namespace hexad::plugin::confined {

// `tensor` writes what stands for a slice's data; without it none is written.
void write_slices(Writer& out, const hexad_weight_list& list,
                  const std::function<void(const DLTensor*)>& tensor = nullptr);

// A list that was read, and what it points to. Neither copied nor moved.
class Slices {
 public:
  // `tensor` reads a slice's data; without it there is none. Throws BadPacket.
  explicit Slices(Reader& in, const std::function<const DLTensor*()>& tensor = nullptr);
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  // Borrowed from this object. Keeps the list's struct_size.
  void fill(hexad_weight_list& list) const;

 private:
  std::deque<std::string> names_;
  std::deque<std::vector<int64_t>> sizes_;
  std::vector<hexad_weight_slice> slices_;
};

}  // namespace hexad::plugin::confined
