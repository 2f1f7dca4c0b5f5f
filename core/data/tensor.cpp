#include "core/data/tensor.hpp"

#include <cstdlib>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

constexpr size_t kAlignment = 64;

int64_t product(const std::vector<int64_t>& shape) {
  int64_t result = 1;
  for (int64_t extent : shape) {
    if (extent < 0) fail(ErrorKind::data, "tensor: negative extent in shape [{}]", joined(shape));
    if (__builtin_mul_overflow(result, extent, &result)) {
      fail(ErrorKind::data, "tensor: shape [{}] is too large to count", joined(shape));
    }
  }
  return result;
}

// Calls f with a null pointer of the element type.
template <typename F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(static_cast<float*>(nullptr));
    case DType::f64: return f(static_cast<double*>(nullptr));
    case DType::i16: return f(static_cast<int16_t*>(nullptr));
    case DType::i32: return f(static_cast<int32_t*>(nullptr));
    case DType::i64: return f(static_cast<int64_t*>(nullptr));
    case DType::u8: return f(static_cast<uint8_t*>(nullptr));
    case DType::boolean: break;
  }
  return f(static_cast<bool*>(nullptr));
}

}  // namespace

size_t item_size(DType dtype) {
  return with_type(dtype, [](auto* type) { return sizeof(*type); });
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i16: return "i16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
  }
  return "?";
}

DType dtype_named(std::string_view name) {
  for (DType dtype : {DType::f32, DType::f64, DType::i16, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    if (name_of(dtype) == name) return dtype;
  }
  fail(ErrorKind::data, "unknown element type '{}'; known: f32, f64, i16, i32, i64, u8, bool", name);
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), numel_(product(shape_)) {
  // aligned_alloc wants a multiple of the alignment, and an empty tensor still has an address.
  const size_t bytes = (nbytes() / kAlignment + 1) * kAlignment;
  owner_ = std::shared_ptr<void>(std::aligned_alloc(kAlignment, bytes), std::free);
  if (!owner_) fail(ErrorKind::data, "tensor: cannot allocate {} bytes for {}", bytes, describe(*this));
  data_ = owner_.get();
  std::memset(data_, 0, bytes);
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> owner, void* data)
    : dtype_(dtype), shape_(std::move(shape)), numel_(product(shape_)), owner_(std::move(owner)), data_(data) {}

Tensor Tensor::full(DType dtype, std::vector<int64_t> shape, double value) {
  Tensor result(dtype, std::move(shape));
  result.fill(value);
  return result;
}

int64_t Tensor::size(int64_t axis) const {
  const int64_t index = axis < 0 ? axis + dim() : axis;
  if (index < 0 || index >= dim()) fail(ErrorKind::data, "tensor {}: no axis {}", describe(*this), axis);
  return shape_[index];
}

size_t Tensor::row_bytes() const {
  size_t bytes = item_size(dtype_);
  for (size_t axis = 1; axis < shape_.size(); ++axis) bytes *= static_cast<size_t>(shape_[axis]);
  return bytes;
}

double Tensor::item(int64_t index) const {
  return with_type(dtype_, [&](auto* type) { return static_cast<double>(static_cast<decltype(type)>(data_)[index]); });
}

void Tensor::fill(double value) {
  with_type(dtype_, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    std::fill_n(static_cast<T*>(data_), numel_, static_cast<T>(value));
  });
}

Tensor Tensor::clone() const {
  Tensor result(dtype_, shape_);
  if (nbytes() > 0) std::memcpy(result.data_, data_, nbytes());
  return result;
}

Tensor Tensor::reshape(std::vector<int64_t> shape) const {
  if (product(shape) != numel_) {
    fail(ErrorKind::data, "cannot view {} as [{}]: other number of elements", describe(*this), joined(shape));
  }
  return Tensor(dtype_, std::move(shape), owner_, data_);
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  if (dim() == 0 || begin < 0 || end < begin || end > shape_[0]) {
    fail(ErrorKind::data, "tensor {}: no rows [{}, {})", describe(*this), begin, end);
  }
  std::vector<int64_t> shape = shape_;
  shape[0] = end - begin;
  return Tensor(dtype_, std::move(shape), owner_, static_cast<std::byte*>(data_) + row_bytes() * begin);
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return clone();
  Tensor result(dtype, shape_);
  with_type(dtype, [&](auto* to) {
    using To = std::remove_pointer_t<decltype(to)>;
    with_type(dtype_, [&](auto* from) {
      auto* source = static_cast<decltype(from)>(data_);
      std::transform(source, source + numel_, static_cast<To*>(result.data_),
                     [](auto v) { return static_cast<To>(v); });
    });
  });
  return result;
}

void Tensor::check_type(DType asked) const {
  const bool byte_view = asked == DType::u8 && dtype_ == DType::boolean;
  if (asked != dtype_ && !byte_view) {
    fail(ErrorKind::data, "tensor {} was read as {}", describe(*this), name_of(asked));
  }
}

void Tensor::copy_from(const void* values, size_t count) {
  if (count != static_cast<size_t>(numel_)) {
    fail(ErrorKind::data, "tensor {} made from {} values", describe(*this), count);
  }
  if (count > 0) std::memcpy(data_, values, nbytes());
}

bool operator==(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.nbytes() == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0);
}

std::string describe(const Tensor& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.dtype()), joined(tensor.shape()));
}

}  // namespace hexad::data
