#include "core/data/batch.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

// Indices of axis 0 that `column` needs in order to keep the given rows.
Tensor gather(const Tensor& tensor, std::span<const int64_t> rows, std::span<const int64_t> starts, int64_t total) {
  std::vector<int64_t> shape = tensor.shape();
  shape[0] = total;
  Tensor result(tensor.dtype(), std::move(shape));
  const size_t bytes = tensor.row_bytes();
  const auto* source = static_cast<const std::byte*>(tensor.data());
  auto* target = static_cast<std::byte*>(result.data());
  for (int64_t row : rows) {
    const size_t count = static_cast<size_t>(starts[row + 1] - starts[row]) * bytes;
    if (count > 0) std::memcpy(target, source + static_cast<size_t>(starts[row]) * bytes, count);
    target += count;
  }
  return result;
}

Tensor join(std::span<const Batch> parts, const std::string& name, const Column& first) {
  std::vector<int64_t> shape = first.tensor.shape();
  shape[0] = 0;
  for (const Batch& part : parts) {
    const Column& column = part.column(name);
    std::vector<int64_t> expected = first.tensor.shape();
    expected[0] = column.tensor.dim() > 0 ? column.tensor.size(0) : 0;
    if (column.axis != first.axis || column.tensor.dtype() != first.tensor.dtype() ||
        column.tensor.shape() != expected) {
      fail(ErrorKind::data, "batch: cannot join column '{}': {} on the {} axis with {} on the {} axis", name,
           describe(first.tensor), name_of(first.axis), describe(column.tensor), name_of(column.axis));
    }
    shape[0] += column.tensor.size(0);
  }
  Tensor result(first.tensor.dtype(), std::move(shape));
  auto* target = static_cast<std::byte*>(result.data());
  for (const Batch& part : parts) {
    const std::span<const std::byte> bytes = part.at(name).bytes();
    target = std::copy(bytes.begin(), bytes.end(), target);
  }
  return result;
}

}  // namespace

std::string_view name_of(Axis axis) {
  switch (axis) {
    case Axis::token: return "token";
    case Axis::sample: return "sample";
    case Axis::group: return "group";
    case Axis::none: return "none";
  }
  return "?";
}

Axis axis_named(std::string_view name) {
  for (Axis axis : {Axis::token, Axis::sample, Axis::group, Axis::none}) {
    if (name_of(axis) == name) return axis;
  }
  fail(ErrorKind::data, "unknown axis '{}'; known: token, sample, group, none", name);
}

Batch Batch::of_lengths(std::span<const int64_t> lengths) {
  std::vector<int64_t> cu_seqlens(lengths.size() + 1, 0);
  for (size_t i = 0; i < lengths.size(); ++i) cu_seqlens[i + 1] = cu_seqlens[i] + lengths[i];
  return of_cu_seqlens(std::move(cu_seqlens));
}

Batch Batch::of_cu_seqlens(std::vector<int64_t> cu_seqlens) {
  if (cu_seqlens.empty() || cu_seqlens.front() != 0 || !std::is_sorted(cu_seqlens.begin(), cu_seqlens.end())) {
    fail(ErrorKind::data, "batch: cu_seqlens must start at 0 and not decrease, got [{}]", joined(cu_seqlens));
  }
  Batch batch;
  batch.cu_seqlens_ = std::move(cu_seqlens);
  return batch;
}

Tensor Batch::cu_seqlens_tensor() const { return Tensor::of(cu_seqlens_); }

std::vector<int64_t> Batch::lengths() const {
  std::vector<int64_t> result(size());
  for (int64_t i = 0; i < size(); ++i) result[i] = length(i);
  return result;
}

void Batch::set_groups(std::vector<int64_t> group_of, int64_t groups) {
  if (static_cast<int64_t>(group_of.size()) != size()) {
    fail(ErrorKind::data, "batch: {} group indices for {} samples", group_of.size(), size());
  }
  for (int64_t group : group_of) {
    if (group < 0 || group >= groups) fail(ErrorKind::data, "batch: group index {} is not in [0, {})", group, groups);
  }
  for (const auto& [name, column] : columns_) {
    if (column.axis == Axis::group && column.tensor.size(0) != groups) {
      fail(ErrorKind::data, "batch: {} groups do not fit the group column '{}' {}", groups, name,
           describe(column.tensor));
    }
  }
  group_of_ = std::move(group_of);
  groups_ = groups;
}

void Batch::set(const std::string& name, Tensor tensor, Axis axis) {
  if (axis != Axis::none) {
    const int64_t want = axis == Axis::token ? tokens() : axis == Axis::sample ? size() : groups_;
    if (tensor.dim() == 0 || tensor.size(0) != want) {
      fail(ErrorKind::data, "batch: column '{}' is {}, but axis 0 must count {} {}s", name, describe(tensor), want,
           name_of(axis));
    }
  }
  columns_.insert_or_assign(name, Column{std::move(tensor), axis});
}

const Column& Batch::column(const std::string& name) const {
  const auto found = columns_.find(name);
  if (found != columns_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : columns_) names.push_back(entry.first);
  fail(ErrorKind::data, "batch: no column '{}'; it has: {}", name, joined(names));
}

Tensor& Batch::at(const std::string& name) { return const_cast<Column&>(column(name)).tensor; }

Tensor Batch::row_of(const std::string& name, int64_t row) const {
  const Column& found = column(name);
  if (row < 0 || row >= size()) fail(ErrorKind::data, "batch: no row {} among {}", row, size());
  if (found.axis == Axis::token) return found.tensor.slice(cu_seqlens_[row], cu_seqlens_[row + 1]);
  if (found.axis == Axis::sample) return found.tensor.slice(row, row + 1);
  if (found.axis == Axis::group) return found.tensor.slice(group_of_[row], group_of_[row] + 1);
  return found.tensor;
}

Batch Batch::select(std::span<const int64_t> rows) const {
  std::vector<int64_t> kept_lengths;
  std::vector<int64_t> kept_groups;
  for (int64_t row : rows) {
    if (row < 0 || row >= size()) fail(ErrorKind::data, "batch: no row {} among {}", row, size());
    kept_lengths.push_back(length(row));
    if (!group_of_.empty()) kept_groups.push_back(group_of_[row]);
  }
  Batch result = of_lengths(kept_lengths);
  result.group_of_ = std::move(kept_groups);
  result.groups_ = groups_;
  std::vector<int64_t> unit(size() + 1);
  std::iota(unit.begin(), unit.end(), 0);
  for (const auto& [name, column] : columns_) {
    Tensor tensor = column.tensor;
    if (column.axis == Axis::token) tensor = gather(tensor, rows, cu_seqlens_, result.tokens());
    if (column.axis == Axis::sample) tensor = gather(tensor, rows, unit, result.size());
    result.columns_.emplace(name, Column{std::move(tensor), column.axis});
  }
  return result;
}

Batch Batch::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || end < begin || end > size()) {
    fail(ErrorKind::data, "batch: no rows [{}, {}) among {}", begin, end, size());
  }
  std::vector<int64_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  return select(rows);
}

Batch Batch::reorder(std::span<const int64_t> order) const {
  if (static_cast<int64_t>(order.size()) != size()) {
    fail(ErrorKind::data, "batch: an order of {} rows for {} samples", order.size(), size());
  }
  inverse_permutation(order);  // refuses what is not a permutation
  return select(order);
}

Batch Batch::repeat_interleave(int64_t repeats) const {
  if (repeats < 0) fail(ErrorKind::data, "batch: cannot repeat rows {} times", repeats);
  std::vector<int64_t> rows;
  rows.reserve(size() * repeats);
  for (int64_t row = 0; row < size(); ++row) rows.insert(rows.end(), repeats, row);
  return select(rows);
}

Batch Batch::concat(std::span<const Batch> parts) {
  if (parts.empty()) return {};
  Batch result;
  const bool grouped =
      std::any_of(parts.begin(), parts.end(), [](const Batch& part) { return !part.group_of_.empty(); });
  for (const Batch& part : parts) {
    if (part.columns_.size() != parts[0].columns_.size()) {
      fail(ErrorKind::data, "batch: cannot join a batch of {} columns with one of {}", parts[0].columns_.size(),
           part.columns_.size());
    }
    if (grouped && static_cast<int64_t>(part.group_of_.size()) != part.size()) {
      fail(ErrorKind::data, "batch: cannot join samples in groups with samples without");
    }
    for (int64_t i = 0; i < part.size(); ++i) result.cu_seqlens_.push_back(result.cu_seqlens_.back() + part.length(i));
    for (int64_t group : part.group_of_) result.group_of_.push_back(result.groups_ + group);
    result.groups_ += part.groups_;
  }
  for (const auto& [name, column] : parts[0].columns_) {
    Tensor tensor = column.axis == Axis::none ? column.tensor : join(parts, name, column);
    result.columns_.emplace(name, Column{std::move(tensor), column.axis});
  }
  return result;
}

std::vector<int64_t> inverse_permutation(std::span<const int64_t> order) {
  std::vector<int64_t> inverse(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t row = order[i];
    if (row < 0 || row >= static_cast<int64_t>(order.size()) || inverse[row] != -1) {
      fail(ErrorKind::data, "not a permutation of 0..{}: [{}]", static_cast<int64_t>(order.size()) - 1, joined(order));
    }
    inverse[row] = static_cast<int64_t>(i);
  }
  return inverse;
}

}  // namespace hexad::data
