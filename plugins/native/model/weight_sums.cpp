#include "plugins/native/model/weight_sums.hpp"

#include <ATen/Functions.h>

namespace hexad::native {
namespace {

constexpr int64_t kColumnFactor = 1000003, kModulus = int64_t{1} << 48;

// int64 [], on the weight's device; it wraps around.
at::Tensor sum_of(const at::Tensor& weight) {
  const at::ScalarType bits = weight.element_size() == 1   ? at::kChar
                              : weight.element_size() == 2 ? at::kShort
                              : weight.element_size() == 4 ? at::kInt
                                                           : at::kLong;
  const at::Tensor matrix = weight.contiguous().view(bits).view({weight.size(0), -1});
  const auto places = [&](int64_t size) { return at::arange(size, matrix.options().dtype(at::kLong)); };
  const at::Tensor rows = at::sum(matrix, {1}, false, at::kLong), columns = at::sum(matrix, {0}, false, at::kLong);
  return (rows * (places(rows.size(0)) + 1)).sum() + (columns * (places(columns.size(0)) * kColumnFactor)).sum();
}

}  // namespace

std::map<std::string, int64_t> weight_sums(const WeightMap& weights) {
  std::vector<at::Tensor> sums;
  for (const auto& [name, weight] : weights) sums.push_back(sum_of(weight));
  if (sums.empty()) return {};
  const at::Tensor all = at::stack(sums).to(at::kCPU);
  std::map<std::string, int64_t> result;
  const int64_t* sum = all.const_data_ptr<int64_t>();
  for (const auto& [name, weight] : weights) result[name] = *sum++ & (kModulus - 1);
  return result;
}

}  // namespace hexad::native
