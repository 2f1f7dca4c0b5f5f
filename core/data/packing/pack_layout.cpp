#include "core/data/packing/pack_layout.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "core/data/padding.hpp"

namespace hexad::data {
namespace {

int64_t fp8_multiple(const std::string& recipe) {
  if (recipe == "blockwise") return 128;
  return recipe == "mxfp8" ? 32 : 16;
}

}  // namespace

PackAlignment pack_alignment(const PackParallelism& parallelism, int64_t sequence_multiple, int64_t longest_pack) {
  int64_t parts = 1;
  if (parallelism.context_parallel > 1) parts *= 2 * parallelism.context_parallel;
  if (parallelism.tensor_parallel > 1 && parallelism.sequence_parallel) parts *= parallelism.tensor_parallel;
  if (sequence_multiple < 1 || sequence_multiple % parts != 0) {
    fail(ErrorKind::config,
         "policy.make_sequence_length_divisible_by is {} but must be a multiple of {}: every sequence is split into "
         "2 * context_parallel_size chunks, and those over the tensor-parallel ranks under sequence_parallel",
         sequence_multiple, parts);
  }
  PackAlignment alignment{.sequence_multiple = sequence_multiple};
  if (parallelism.fp8_recipe) alignment.total_multiple = fp8_multiple(*parallelism.fp8_recipe) * parts;
  if (parallelism.pipeline_parallel > 1) alignment.total = round_up(longest_pack, alignment.total_multiple);
  return alignment;
}

PackLayout pack_layout(std::span<const int64_t> lengths, const PackAlignment& alignment) {
  PackLayout layout{{0}, {0}, 0};
  for (int64_t length : lengths) {
    layout.cu_seqlens.push_back(static_cast<int32_t>(layout.cu_seqlens.back() + length));
    const int64_t padded = round_up(length, alignment.sequence_multiple);
    layout.cu_seqlens_padded.push_back(static_cast<int32_t>(layout.cu_seqlens_padded.back() + padded));
  }
  if (lengths.empty()) return layout;
  const int64_t used = layout.tokens();
  const int64_t total = alignment.total.value_or(round_up(used, alignment.total_multiple));
  if (total < used) {
    fail(ErrorKind::data, "sequence packing: a pack of {} tokens (padded) does not fit the row of {}", used, total);
  }
  layout.cu_seqlens_padded.back() = static_cast<int32_t>(total);
  for (size_t i = 0; i < lengths.size(); ++i) {
    layout.max_seqlen =
        std::max<int64_t>(layout.max_seqlen, layout.cu_seqlens_padded[i + 1] - layout.cu_seqlens_padded[i]);
  }
  return layout;
}

Tensor lay_out(const Tensor& packed, const PackLayout& layout, int64_t pad_value) {
  const std::span<const int64_t> source = packed.span<int64_t>();
  if (packed.numel() != layout.cu_seqlens.back()) {
    fail(ErrorKind::data, "sequence packing: {} for a layout of {} tokens", describe(packed), layout.cu_seqlens.back());
  }
  Tensor row = Tensor::full(DType::i64, {layout.tokens()}, static_cast<double>(pad_value));
  const std::span<int64_t> target = row.span<int64_t>();
  for (size_t i = 0; i + 1 < layout.cu_seqlens.size(); ++i) {
    std::copy(source.begin() + layout.cu_seqlens[i], source.begin() + layout.cu_seqlens[i + 1],
              target.begin() + layout.cu_seqlens_padded[i]);
  }
  return row;
}

Tensor context_parallel_slice(const Tensor& row, const PackLayout& layout, int64_t rank, int64_t ranks) {
  if (ranks == 1) return row;
  const std::span<const int64_t> source = row.span<int64_t>();
  std::vector<int64_t> part;
  for (size_t i = 0; i + 1 < layout.cu_seqlens_padded.size(); ++i) {
    const int64_t begin = layout.cu_seqlens_padded[i];
    const int64_t chunk = (layout.cu_seqlens_padded[i + 1] - begin) / (2 * ranks);
    for (int64_t index : {rank, 2 * ranks - 1 - rank}) {
      const auto first = source.begin() + begin + index * chunk;
      part.insert(part.end(), first, first + chunk);
    }
  }
  return Tensor::of(part);
}

}  // namespace hexad::data
