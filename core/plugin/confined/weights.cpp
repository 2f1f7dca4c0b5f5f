#include "core/plugin/confined/weights.hpp"

namespace hexad::plugin::confined {

void write_slices(Writer& out, const hexad_weight_list& list, const std::function<void(const DLTensor*)>& tensor) {
  out.put(list.count);
  for (int64_t i = 0; i < list.count; ++i) {
    const hexad_weight_slice& slice = list.slices[i];
    out.text(slice.name);
    out.put(slice.ndim);
    out.put(slice.dtype);
    for (const int64_t* sizes : {slice.global_shape, slice.offsets, slice.shape})
      out.array(sizes, sizes ? slice.ndim : 0);
    if (tensor) tensor(slice.tensor);
  }
}

Slices::Slices(Reader& in, const std::function<const DLTensor*()>& tensor) {
  const auto count = in.get<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    hexad_weight_slice slice{};
    slice.name = names_.emplace_back(in.text()).c_str();
    slice.ndim = in.get<int32_t>();
    slice.dtype = in.get<DLDataType>();
    for (const int64_t** sizes : {&slice.global_shape, &slice.offsets, &slice.shape}) {
      const std::vector<int64_t>& read = sizes_.emplace_back(in.array<int64_t>());
      if (!read.empty() && static_cast<int64_t>(read.size()) != slice.ndim) throw BadPacket("a weight of no shape");
      *sizes = read.empty() ? nullptr : read.data();
    }
    if (tensor) slice.tensor = tensor();
    slices_.push_back(slice);
  }
}

void Slices::fill(hexad_weight_list& list) const {
  list.slices = slices_.data();
  list.count = static_cast<int64_t>(slices_.size());
}

}  // namespace hexad::plugin::confined
