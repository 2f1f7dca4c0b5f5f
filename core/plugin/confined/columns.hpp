// The columns of a completion on the wire.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/plugin/confined/wire.hpp"

namespace hexad::plugin::confined {

// What is wrong with a column travels as it is, but for bytes that cannot: the engine refuses it by name.
void write_columns(Writer& out, const hexad_completion& event);

// Columns that were read, and what they point to. Neither copied nor moved.
class Columns {
 public:
  explicit Columns(Reader& in);  // throws BadPacket
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  const hexad_named_tensor* data() const { return named_.data(); }  // borrowed from this object
  int64_t size() const { return static_cast<int64_t>(named_.size()); }

 private:
  struct Column {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<char> bytes;
    DLTensor view{};
  };
  static void read_tensor(Reader& in, Column& column);

  std::deque<Column> columns_;
  std::vector<hexad_named_tensor> named_;
};

}  // namespace hexad::plugin::confined
