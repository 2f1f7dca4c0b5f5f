// A dense host array: what the controller computes with and what messages between processes carry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hexad::data {

// `boolean` is stored as one byte, 0 or 1.
enum class DType : uint8_t { f32, f64, i16, i32, i64, u8, boolean };

size_t item_size(DType dtype);
std::string_view name_of(DType dtype);     // "f32", ..., "bool"
DType dtype_named(std::string_view name);  // inverse; throws Error(data) for another name

template <typename T>
constexpr DType dtype_of() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<U, int16_t>)
    return DType::i16;
  else if constexpr (std::is_same_v<U, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<U, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<U, uint8_t>)
    return DType::u8;
  else {
    static_assert(std::is_same_v<U, bool>, "no DType of this element type");
    return DType::boolean;
  }
}

// Row-major and contiguous. A copy of a Tensor shares the buffer (cheap); clone() makes one of its own. The buffer is
// 64-byte aligned unless it was wrapped. Not synchronised: one thread writes, or several read.
class Tensor {
 public:
  Tensor() : Tensor(DType::f32, {0}) {}
  // Zero-filled. Throws Error(data) for a negative extent.
  Tensor(DType dtype, std::vector<int64_t> shape);
  // Shares `data`; `owner` keeps it alive. `data` holds at least nbytes() bytes, aligned for the element type.
  Tensor(DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> owner, void* data);

  // Copies `values`, whose count must be the product of `shape`.
  template <typename T>
  static Tensor of(std::vector<int64_t> shape, std::span<const T> values) {
    Tensor result(dtype_of<T>(), std::move(shape));
    result.copy_from(values.data(), values.size());
    return result;
  }
  template <typename T>
  static Tensor of(std::span<const T> values) {
    return of<T>({static_cast<int64_t>(values.size())}, values);
  }
  template <typename T>
  static Tensor of(const std::vector<T>& values) {
    return of<T>(std::span<const T>(values));
  }
  template <typename T>
  static Tensor of(std::initializer_list<T> values) {
    return of<T>(std::span<const T>(values.begin(), values.size()));
  }
  // Every element is `value`, converted.
  static Tensor full(DType dtype, std::vector<int64_t> shape, double value);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t dim() const { return static_cast<int64_t>(shape_.size()); }
  // Extent of one axis; a negative axis counts from the end.
  int64_t size(int64_t axis) const;
  int64_t numel() const { return numel_; }
  size_t nbytes() const { return static_cast<size_t>(numel_) * item_size(dtype_); }
  // Bytes of one index of axis 0.
  size_t row_bytes() const;

  // Throw Error(data) when T is not the dtype; uint8_t also reads and writes a boolean tensor.
  template <typename T>
  std::span<T> span() {
    check_type(dtype_of<T>());
    return {static_cast<T*>(data_), static_cast<size_t>(numel_)};
  }
  template <typename T>
  std::span<const T> span() const {
    check_type(dtype_of<T>());
    return {static_cast<const T*>(data_), static_cast<size_t>(numel_)};
  }
  void* data() { return data_; }
  const void* data() const { return data_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), nbytes()}; }

  // Element as a double, whatever the dtype.
  double item(int64_t index) const;
  void fill(double value);

  Tensor clone() const;
  // Same buffer, other extents with the same product.
  Tensor reshape(std::vector<int64_t> shape) const;
  // Same buffer, indices [begin, end) of axis 0.
  Tensor slice(int64_t begin, int64_t end) const;
  // A copy in another element type.
  Tensor to(DType dtype) const;

 private:
  void check_type(DType asked) const;
  void copy_from(const void* values, size_t count);

  DType dtype_;
  std::vector<int64_t> shape_;
  int64_t numel_ = 0;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

// Same dtype, shape and bytes (two nans of the same bits are equal).
bool operator==(const Tensor& a, const Tensor& b);

// "f32[4, 7]", for messages.
std::string describe(const Tensor& tensor);

}  // namespace hexad::data
