// The one batch format of Hexad: named tensors over ragged samples, per-token arrays stored packed.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/data/tensor.hpp"

namespace hexad::data {

// What axis 0 of a column counts.
enum class Axis : uint8_t {
  token,   // [T, ...]: the samples' tokens one after another, sample i at [cu_seqlens[i], cu_seqlens[i + 1])
  sample,  // [B, ...]
  group,   // [G, ...]: one value a prompt; sample i reads index group_of()[i]
  none,    // any shape; the same for the whole batch
};
std::string_view name_of(Axis axis);
Axis axis_named(std::string_view name);  // throws Error(data)

struct Column {
  Tensor tensor;
  Axis axis = Axis::none;
};

// B samples with T tokens in all. A value: copies share the buffers, operations return new batches and leave theirs as
// they are. Every column agrees with cu_seqlens at all times (set() checks it).
class Batch {
 public:
  // No samples.
  Batch() : cu_seqlens_{0} {}
  // Samples of these lengths (>= 0), each in a group of its own until set_groups().
  static Batch of_lengths(std::span<const int64_t> lengths);
  // [B+1], starting at 0, not decreasing.
  static Batch of_cu_seqlens(std::vector<int64_t> cu_seqlens);

  int64_t size() const { return static_cast<int64_t>(cu_seqlens_.size()) - 1; }  // B
  int64_t tokens() const { return cu_seqlens_.back(); }                          // T
  std::span<const int64_t> cu_seqlens() const { return cu_seqlens_; }
  Tensor cu_seqlens_tensor() const;  // i64 [B+1]
  int64_t length(int64_t row) const { return cu_seqlens_[row + 1] - cu_seqlens_[row]; }
  std::vector<int64_t> lengths() const;

  // Group index of every sample; empty when the batch has no groups. Indices may skip (after select).
  std::span<const int64_t> group_of() const { return group_of_; }
  int64_t groups() const { return groups_; }  // G, the extent of group columns
  void set_groups(std::vector<int64_t> group_of, int64_t groups);

  // Adds or replaces a column. Throws Error(data) if its extent does not fit the axis.
  void set(const std::string& name, Tensor tensor, Axis axis);
  void erase(const std::string& name) { columns_.erase(name); }
  bool has(const std::string& name) const { return columns_.contains(name); }
  // Throw Error(data) naming the columns there are.
  const Column& column(const std::string& name) const;
  const Tensor& at(const std::string& name) const { return column(name).tensor; }
  Tensor& at(const std::string& name);
  const std::map<std::string, Column>& columns() const { return columns_; }

  // The elements of a token column that belong to one sample, or of a sample column: a view of the buffer.
  template <typename T>
  std::span<const T> row(const std::string& name, int64_t row) const {
    return row_of(name, row).template span<T>();
  }

  // Rows in this order; a row may be named more than once or not at all. Group columns are carried whole.
  Batch select(std::span<const int64_t> rows) const;
  // Rows [begin, end).
  Batch slice(int64_t begin, int64_t end) const;
  // Row i of the result is row order[i] here. `order` is a permutation.
  Batch reorder(std::span<const int64_t> order) const;
  // Every row `repeats` times, next to each other.
  Batch repeat_interleave(int64_t repeats) const;
  // Rows one after another. All parts have the same columns with the same dtype and trailing extents; columns of axis
  // `none` come from the first part; groups of later parts are renumbered after those of earlier ones.
  static Batch concat(std::span<const Batch> parts);

 private:
  Tensor row_of(const std::string& name, int64_t row) const;

  std::vector<int64_t> cu_seqlens_;
  std::vector<int64_t> group_of_;
  int64_t groups_ = 0;
  std::map<std::string, Column> columns_;
};

// The permutation q with q[order[i]] = i: brings results computed in `order` back to the original rows.
std::vector<int64_t> inverse_permutation(std::span<const int64_t> order);

}  // namespace hexad::data
