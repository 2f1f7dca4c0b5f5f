#include "plugins/native/parallel/part_draws.hpp"

#include <ATen/Functions.h>

#include "modeling/op/cpu/parallel.hpp"
#include "plugins/native/sample/part_sampler.hpp"

namespace hexad::native {
namespace {

static_assert(sizeof(PartSum) == 2 * sizeof(double));

// [ranks, draws, 2] doubles: PartSum.
at::Tensor sums_of_parts(const at::Tensor& logits, std::span<const WantedDraw> wanted, const Replica& replica) {
  const auto draws = static_cast<int64_t>(wanted.size()), columns = logits.size(1);
  const at::Tensor own = at::empty({draws, 2}, at::kDouble);
  const at::Tensor all = at::empty({replica.shard().ranks, draws, 2}, at::kDouble);
  auto* const sums = static_cast<PartSum*>(own.data_ptr());
  modeling::cpu::parallel_for(draws, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sums[i] = sum_of_part(logits.const_data_ptr<float>() + wanted[i].row * columns, columns, *wanted[i].params);
  });
  replica.gather(own, all);
  return all;
}

}  // namespace

std::vector<Draw> draw_over_ranks(const at::Tensor& logits, int64_t first, std::span<const WantedDraw> wanted,
                                  const Replica& replica) {
  const auto draws = static_cast<int64_t>(wanted.size()), columns = logits.size(1);
  const auto shard = replica.shard();
  if (draws == 0) return {};
  const at::Tensor all = sums_of_parts(logits, wanted, replica);
  const auto* const sums = static_cast<const PartSum*>(all.const_data_ptr());
  const at::Tensor drawn = at::zeros({draws}, at::kLong);
  auto* const numbers = drawn.data_ptr<int64_t>();
  modeling::cpu::parallel_for(draws, 1, [&](int64_t begin, int64_t end) {
    std::vector<PartSum> parts(static_cast<size_t>(shard.ranks));
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t part = 0; part < shard.ranks; ++part) parts[part] = sums[part * draws + i];
      const PartDraw found = find_part(parts, *wanted[i].params, wanted[i].u);
      if (found.part != shard.rank) continue;
      const float* row = logits.const_data_ptr<float>() + wanted[i].row * columns;
      numbers[i] = number_of(draw_in_part(row, columns, first, found, *wanted[i].params));
    }
  });
  replica.largest(drawn);
  std::vector<Draw> result;
  for (int64_t i = 0; i < draws; ++i) result.push_back(draw_of(numbers[i]));
  return result;
}

}  // namespace hexad::native
