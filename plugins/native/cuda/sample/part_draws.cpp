#include "plugins/native/cuda/sample/part_draws.hpp"

#include "plugins/native/cuda/decode/pool.hpp"

namespace hexad::native::cuda {

static_assert(sizeof(PartSum) == 2 * sizeof(double));

PartDraws::PartDraws(const Replica& replica, int64_t vocabulary, int64_t draws, at::Device device)
    : replica_(replica), columns_(modeling::chunk_range(vocabulary, replica.shard().ranks, replica.shard().rank)) {
  const auto buffer = [&](int64_t numbers, at::ScalarType dtype) {
    return pool_tensor({numbers}, dtype, device, "a pass of the generator needs");
  };
  own_ = buffer(2 * draws, at::kDouble), all_ = buffer(replica.shard().ranks * 2 * draws, at::kDouble);
  drawn_ = buffer(draws, at::kLong);
}

void PartDraws::draw(const at::Tensor& logits, const DrawTask* tasks, int32_t* tokens, float* logprobs, int64_t count,
                     cudaStream_t stream) const {
  if (count == 0) return;
  const auto [rank, ranks] = replica_.shard();
  const PartLogits part{logits.const_data_ptr<float>(), int(logits.size(1)), int(columns_.begin)};
  const at::Tensor own = own_.narrow(0, 0, 2 * count), all = all_.narrow(0, 0, ranks * 2 * count);
  const at::Tensor drawn = drawn_.narrow(0, 0, count);
  sum_parts(part, tasks, static_cast<PartSum*>(own.data_ptr()), int(count), stream);
  replica_.gather(own, all);
  draw_in_part(part, tasks, static_cast<const PartSum*>(all.const_data_ptr()), int(rank), int(ranks),
               drawn.data_ptr<int64_t>(), int(count), stream);
  replica_.largest(drawn);
  take_draws(drawn.const_data_ptr<int64_t>(), tasks, tokens, logprobs, int(count), stream);
}

}  // namespace hexad::native::cuda
