#include "core/cluster/generation_requests.hpp"

#include <algorithm>
#include <cstring>

#include "core/cluster/tensor_view.hpp"
#include "core/plugin/host/staging.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::cluster {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 24;

}  // namespace

data::Batch columns_of(const std::string& label, const hexad_completion& completion, int64_t prompt_tokens) {
  const int64_t tokens = prompt_tokens + completion.count;
  data::Batch batch = data::Batch::of_lengths(std::vector<int64_t>{tokens});
  if (!HEXAD_HAS(&completion, num_columns)) return batch;
  for (int64_t i = 0; i < completion.num_columns; ++i) {
    const hexad_named_tensor& column = completion.columns[i];
    const std::string name = column.name ? column.name : "";
    const auto refuse = [&](const std::string& reason) {
      fail(ErrorKind::plugin, "{}: column '{}' of the completion of request {}: {}", label, name, completion.id,
           reason);
    };
    if (name.empty()) refuse("it has no name");
    if (!column.tensor || column.axis != HEXAD_AXIS_TOKEN) refuse("wanted a tensor with the axis HEXAD_AXIS_TOKEN");
    const DLTensor& given = *column.tensor;
    const std::vector<int64_t> shape(given.shape, given.shape + std::max(given.ndim, 0));
    if (batch.has(name)) refuse("there are two of this name");
    const std::optional<data::DType> dtype = dtype_of(given.dtype);
    if (!dtype)
      refuse(fmt::format("got dtype code {} of {} bits, wanted f32, f64, i16, i32, i64 or u8", given.dtype.code,
                         given.dtype.bits));
    if (given.device.device_type != kDLCPU) refuse("wanted host memory");
    if (shape.empty() || shape[0] != tokens)
      refuse(fmt::format("got shape [{}], wanted {} tokens of prompt and completion first", joined(shape), tokens));
    if (std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 0 || extent > kMostExtent; }))
      refuse(fmt::format("got shape [{}], wanted extents of 0 to {}", joined(shape), kMostExtent));
    if (!given.data || !plugin::contiguous(given)) refuse("wanted a contiguous tensor");
    data::Tensor copy(*dtype, shape);
    if (copy.nbytes() > 0) std::memcpy(copy.data(), HEXAD_DATA(const char, &given), copy.nbytes());
    batch.set(name, copy, data::Axis::token);
  }
  return batch;
}

data::Batch join_columns(const std::string& label, const std::vector<data::Batch>& parts) {
  try {
    return data::Batch::concat(parts);
  } catch (const Error& error) {
    fail(ErrorKind::plugin, "{}: the columns of its completions differ: {}", label, error.what());
  }
}

}  // namespace hexad::cluster
