#include "core/plugin/confined/columns.hpp"

#include <algorithm>

#include "core/plugin/confined/wire.hpp"
#include "core/plugin/host/staging.hpp"

namespace hexad::plugin::confined {
namespace {

// Whether its bytes can be counted: extents that are not negative, fewer than 2^48 bytes.
bool countable(const DLTensor& tensor) {
  uint64_t bytes = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes / 8 + 1;
  for (int32_t d = 0; d < tensor.ndim; ++d)
    if (tensor.shape[d] < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[d]), &bytes))
      return false;
  return bytes < uint64_t{1} << 48;
}

bool can_travel(const DLTensor& tensor) {
  return tensor.data && tensor.device.device_type == kDLCPU && countable(tensor) && contiguous(tensor);
}

void write_column(Writer& out, const hexad_named_tensor& column) {
  out.optional_text(column.name);
  out.put(column.axis);
  out.put(uint8_t{column.tensor != nullptr});
  if (!column.tensor) return;
  const DLTensor& tensor = *column.tensor;
  const bool travels = can_travel(tensor);
  out.put(tensor.device);
  out.put(tensor.dtype);
  out.array(tensor.shape, std::max(tensor.ndim, 0));
  out.put(uint8_t{travels});
  if (travels) out.array(HEXAD_DATA(const char, &tensor), static_cast<int64_t>(tensor_bytes(tensor)));
}

}  // namespace

void write_columns(Writer& out, const hexad_completion& event) {
  const int64_t count = HEXAD_HAS(&event, num_columns) ? event.num_columns : 0;
  out.put(count);
  for (int64_t i = 0; i < count; ++i) write_column(out, event.columns[i]);
}

Columns::Columns(Reader& in) {
  for (auto left = in.get<int64_t>(); left > 0; --left) {
    Column& column = columns_.emplace_back();
    if (in.has()) column.name = in.text();
    const auto axis = in.get<int32_t>();
    const bool present = in.has();
    if (present) read_tensor(in, column);
    named_.push_back({column.name.c_str(), present ? &column.view : nullptr, nullptr, axis, 0});
  }
}

void Columns::read_tensor(Reader& in, Column& column) {
  DLTensor& view = column.view;
  view.device = in.get<DLDevice>();
  view.dtype = in.get<DLDataType>();
  column.shape = in.array<int64_t>();
  view.ndim = static_cast<int32_t>(column.shape.size());
  view.shape = column.shape.data();
  if (!in.has()) return;  // without data
  column.bytes = in.array<char>();
  if (!countable(view) || tensor_bytes(view) != column.bytes.size())
    throw BadPacket("a column's bytes are not those of its shape");
  column.bytes.resize(std::max<size_t>(1, column.bytes.size()));  // an empty one has an address too
  view.data = column.bytes.data();
}

}  // namespace hexad::plugin::confined
