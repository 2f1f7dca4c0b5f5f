#include "modeling/parallel/tensor/token_pipeline.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"
#include "modeling/parallel/placement.hpp"

namespace hexad::modeling {
namespace {

// The tokens [0, count) in at most `runs` runs, none empty.
std::vector<Range> runs_of(int64_t count, int64_t runs) {
  std::vector<Range> result;
  for (int64_t i = 0; i < runs; ++i)
    if (const Range run = chunk_range(count, runs, i); run.size() > 0) result.push_back(run);
  return result;
}

}  // namespace

GatheredProducts gather_and_multiply(const at::Tensor& x, const std::vector<at::Tensor>& weights, const Group& group,
                                     int64_t runs) {
  const int64_t ranks = group.size(), tokens = x.size(0), width = x.size(1);
  const at::Tensor mine = x.contiguous(), whole = at::empty({ranks, tokens, width}, x.options());
  std::vector<at::Tensor> products;
  for (const at::Tensor& weight : weights) products.push_back(at::empty({ranks, tokens, weight.size(0)}, x.options()));
  const std::vector<Range> all = runs_of(tokens, runs);
  std::vector<at::Tensor> arriving(all.size());
  std::vector<Pending> under_way(all.size());
  const auto start = [&](size_t i) {
    arriving[i] = at::empty({ranks, all[i].size(), width}, x.options());
    under_way[i] = group.all_gather(arriving[i], mine.narrow(0, all[i].begin, all[i].size()));
  };
  if (!all.empty()) start(0);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 1 < all.size()) start(i + 1);
    under_way[i].wait();
    whole.narrow(1, all[i].begin, all[i].size()).copy_(arriving[i]);
    for (size_t k = 0; k < weights.size(); ++k)
      products[k].narrow(1, all[i].begin, all[i].size()).copy_(at::linear(arriving[i], weights[k]));
    arriving[i] = at::Tensor();
  }
  for (at::Tensor& product : products) product = product.flatten(0, 1);
  return {whole.flatten(0, 1), std::move(products)};
}

at::Tensor multiply_and_scatter(const at::Tensor& x, const at::Tensor& weight, const Group& group, int64_t runs) {
  const int64_t ranks = group.size();
  if (x.size(0) % ranks != 0) fail("sequence parallel: {} tokens do not divide over {} ranks", x.size(0), ranks);
  const int64_t tokens = x.size(0) / ranks;
  const at::Tensor by_rank = x.unflatten(0, {ranks, tokens}), out = at::empty({tokens, weight.size(0)}, x.options());
  std::vector<at::Tensor> leaving;
  std::vector<Pending> under_way;
  for (const Range& run : runs_of(tokens, runs)) {
    leaving.push_back(at::linear(by_rank.narrow(1, run.begin, run.size()), weight).contiguous());
    under_way.push_back(group.reduce_scatter(out.narrow(0, run.begin, run.size()), leaving.back()));
  }
  for (Pending& pending : under_way) pending.wait();
  return out;
}

}  // namespace hexad::modeling
