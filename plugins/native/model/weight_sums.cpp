#include "plugins/native/model/weight_sums.hpp"

#include <ATen/Functions.h>

namespace hexad::native {
namespace {

constexpr int64_t kColumnFactor = 1000003, kModulus = int64_t{1} << 48;

// int64 [], on the weight's device; it wraps around. The weight's first row and column are these of a whole one.
at::Tensor sum_of(const at::Tensor& weight, int64_t row, int64_t column) {
  const at::ScalarType bits = weight.element_size() == 1   ? at::kChar
                              : weight.element_size() == 2 ? at::kShort
                              : weight.element_size() == 4 ? at::kInt
                                                           : at::kLong;
  const at::Tensor matrix = weight.contiguous().view(bits).view({weight.size(0), -1});
  const auto places = [&](int64_t first, int64_t size) {
    return at::arange(first, first + size, matrix.options().dtype(at::kLong));
  };
  const at::Tensor rows = at::sum(matrix, {1}, false, at::kLong), columns = at::sum(matrix, {0}, false, at::kLong);
  return (rows * (places(row, rows.size(0)) + 1)).sum() +
         (columns * (places(column, columns.size(0)) * kColumnFactor)).sum();
}

// Of an FP8 matrix's scales. One whose columns are cut has a scale for each row of each part: a column of them each.
WeightPart scales_part(const WeightPart& part) {
  const auto& whole = part.global_shape;
  return {scales_name(part.name),
          {whole[0], whole[1] / part.shape[1]},
          {part.offsets[0], part.offsets[1] / part.shape[1]},
          {part.shape[0], 1},
          part.counts};
}

}  // namespace

std::map<std::string, int64_t> weight_sums(const WeightMap& weights, const std::vector<WeightPart>& parts,
                                           const Replica& replica) {
  if (weights.empty()) return {};
  std::map<std::string, WeightPart> cut;
  for (const WeightPart& part : parts) {
    if (part.whole()) continue;
    cut[part.name] = part;
    if (weights.contains(scales_name(part.name))) cut[scales_name(part.name)] = scales_part(part);
  }
  std::vector<at::Tensor> whole, shared;  // sums; of those that are cut, in the order of `cut`
  for (const auto& [name, weight] : weights)
    if (!cut.contains(name)) whole.push_back(sum_of(weight, 0, 0));
  for (const auto& [name, part] : cut) {
    const at::Tensor sum = sum_of(weights.at(name), part.offsets[0], part.offsets.size() > 1 ? part.offsets[1] : 0);
    shared.push_back(part.counts ? sum : at::zeros_like(sum));
  }
  const auto on_host = [](const std::vector<at::Tensor>& sums) {
    return sums.empty() ? at::empty({0}, at::kLong) : at::stack(sums).to(at::kCPU);
  };
  const at::Tensor own = on_host(whole), all = on_host(shared);
  if (!cut.empty()) replica.sum(all);
  std::map<std::string, int64_t> result;
  const int64_t *of_whole = own.const_data_ptr<int64_t>(), *of_cut = all.const_data_ptr<int64_t>();
  for (const auto& [name, weight] : weights)
    if (!cut.contains(name)) result[name] = *of_whole++ & (kModulus - 1);
  for (const auto& [name, part] : cut) result[name] = *of_cut++ & (kModulus - 1);
  return result;
}

}  // namespace hexad::native
