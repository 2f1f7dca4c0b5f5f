#include "plugins/native/cuda/decode/pass_arrays.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "plugins/native/cuda/check.hpp"

namespace hexad::native::cuda {

size_t PassArrays::place(size_t bytes) {
  const size_t offset = size_;
  size_ = (size_ + bytes + 255) / 256 * 256;
  return offset;
}

PassArrays::LevelOffsets PassArrays::place_level(int64_t requests, int64_t items) {
  const size_t per_request = 4 * size_t(requests + 1), per_item = 4 * size_t(items);
  LevelOffsets offsets{};
  offsets.requests = requests, offsets.items = items;
  for (size_t* array : {&offsets.q_indptr, &offsets.o_indptr, &offsets.block_indptr, &offsets.last_block_size})
    *array = place(per_request);
  for (size_t* array : {&offsets.request, &offsets.tile, &offsets.chunk}) *array = place(per_item);
  offsets.valid = place(size_t(items));
  offsets.chunk_size = place(4);
  return offsets;
}

PassArrays::PassArrays(const ArrayLimits& limits, at::Device device) : limits_(limits) {
  const PlanBounds bounds = plan_bounds(limits.shape, limits.sequences, limits.rows, limits.sequences);
  tasks_ = place(sizeof(DrawTask) * size_t(limits.sequences));
  merge_ = place(sizeof(MergeRow) * size_t(limits.sequences));
  logit_rows_ = place(4 * size_t(limits.sequences));
  own_ = place_level(limits.sequences, bounds.own_items);
  shared_ = place_level(limits.sequences, bounds.shared_items);
  prompt_ = place_level(limits.sequences, bounds.prompt_items);
  small_ = size_;
  ids_ = place(3 * 4 * size_t(limits.rows));
  for (LevelOffsets* level : {&own_, &shared_, &prompt_}) {
    level->most_blocks = limits.sequences * limits.blocks_per_sequence;
    level->blocks = place(4 * size_t(level->most_blocks));
  }
  memory_ = at::empty({int64_t(size_)}, at::TensorOptions(at::kByte).device(device));
  device_ = static_cast<char*>(memory_.data_ptr());
  for (size_t i = 0; i < 2; ++i) {
    check(cudaHostAlloc(reinterpret_cast<void**>(&host_[i]), size_, cudaHostAllocDefault), "page-locked memory");
    check(cudaEventCreateWithFlags(&copied_[i], cudaEventDisableTiming), "event");
  }
}

PassArrays::~PassArrays() {
  for (size_t i = 0; i < 2; ++i) {
    if (copied_[i]) cudaEventSynchronize(copied_[i]), cudaEventDestroy(copied_[i]);
    if (host_[i]) cudaFreeHost(host_[i]);
  }
}

PassArrays::Host PassArrays::begin() {
  turn_ ^= 1;
  check(cudaEventSynchronize(copied_[turn_]), "copy of a pass");
  char* host = host_[turn_];
  int32_t* ids = at<int32_t>(host, ids_);
  return {ids, ids + limits_.rows, ids + 2 * limits_.rows, at<int32_t>(host, logit_rows_), at<DrawTask>(host, tasks_)};
}

LevelArrays PassArrays::level(const LevelOffsets& o, int64_t requests, int64_t items) const {
  const auto array = [&](size_t offset) { return at<const int32_t>(device_, offset); };
  return {array(o.q_indptr),
          array(o.o_indptr),
          array(o.block_indptr),
          array(o.last_block_size),
          array(o.blocks),
          array(o.request),
          array(o.tile),
          array(o.chunk),
          at<const bool>(device_, o.valid),
          array(o.chunk_size),
          int(requests),
          int(items)};
}

void PassArrays::write_level(const PlanLevel& plan, const LevelOffsets& o, int64_t requests, int64_t items) {
  if (requests > o.requests || items > o.items || int64_t(plan.blocks.size()) > o.most_blocks ||
      plan.requests() > requests || plan.items() > items) {
    throw std::logic_error("an attention plan is larger than its bounds");
  }
  char* host = host_[turn_];
  // Beyond the plan: requests without rows or blocks, items that are not valid.
  const auto write = [&](size_t offset, const std::vector<int32_t>& values, int64_t count) {
    int32_t* to = at<int32_t>(host, offset);
    std::copy(values.begin(), values.end(), to);
    std::fill(to + values.size(), to + std::max<int64_t>(count, int64_t(values.size())),
              values.empty() ? 0 : values.back());
  };
  write(o.q_indptr, plan.q_indptr, requests + 1);
  write(o.o_indptr, plan.o_indptr, requests + 1);
  write(o.block_indptr, plan.block_indptr, requests + 1);
  write(o.last_block_size, plan.last_block_size, requests + 1);
  write(o.request, plan.request, items);
  write(o.tile, plan.tile, items);
  write(o.chunk, plan.chunk, items);
  bool* valid = at<bool>(host, o.valid);
  std::fill(valid, valid + plan.items(), true);
  std::fill(valid + plan.items(), valid + items, false);
  *at<int32_t>(host, o.chunk_size) = plan.chunk_size;
  std::copy(plan.blocks.begin(), plan.blocks.end(), at<int32_t>(host, o.blocks));
}

void PassArrays::copy(size_t offset, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(device_ + offset, host_[turn_] + offset, bytes, cudaMemcpyHostToDevice, stream),
        "copy of a pass");
}

void PassArrays::upload(const AttentionPlan& plan, const Counts& counts, const Counts& padded, cudaStream_t stream) {
  char* host = host_[turn_];
  int32_t* ids = at<int32_t>(host, ids_);
  for (int64_t row = counts.rows; row < padded.rows; ++row) {
    ids[row] = ids[row + limits_.rows] = 0;
    ids[row + 2 * limits_.rows] = -1;
  }
  std::fill(at<int32_t>(host, logit_rows_) + counts.logit_rows, at<int32_t>(host, logit_rows_) + padded.logit_rows, 0);
  for (int64_t i = counts.draws; i < padded.draws; ++i) at<DrawTask>(host, tasks_)[i].row = -1;
  MergeRow* merge = at<MergeRow>(host, merge_);
  std::copy(plan.merge.begin(), plan.merge.end(), merge);
  std::fill(merge + counts.decode_rows, merge + padded.decode_rows, MergeRow{});
  write_level(plan.own, own_, padded.decode_rows, padded.own_items);
  write_level(plan.shared, shared_, padded.decode_rows, padded.shared_items);
  write_level(plan.prompt, prompt_, plan.prompt.requests(), plan.prompt.items());

  copy(0, small_, stream);
  check(cudaMemcpy2DAsync(device_ + ids_, 4 * size_t(limits_.rows), host + ids_, 4 * size_t(limits_.rows),
                          4 * size_t(padded.rows), 3, cudaMemcpyHostToDevice, stream),
        "copy of a pass");
  copy(own_.blocks, 4 * plan.own.blocks.size(), stream);
  copy(shared_.blocks, 4 * plan.shared.blocks.size(), stream);
  copy(prompt_.blocks, 4 * plan.prompt.blocks.size(), stream);
  check(cudaEventRecord(copied_[turn_], stream), "event");
}

}  // namespace hexad::native::cuda
