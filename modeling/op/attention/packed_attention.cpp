#include "modeling/op/attention/packed_attention.hpp"

#include <ATen/Functions.h>
#include <ATen/ops/_flash_attention_forward.h>

#include <cmath>
#include <numeric>

#include "modeling/error.hpp"
#include "modeling/op/attention/cpu_attention.hpp"
#include "modeling/op/cuda/attention/cudnn_attention.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/host_copy.hpp"
#include "modeling/op/row/adjacent.hpp"
#include "modeling/op/row/gather.hpp"

namespace hexad::modeling {
namespace {

// bool [S, S]: may query i (row) see key j (column)?
at::Tensor window_mask(int64_t length, int64_t window, at::Device device) {
  const at::Tensor index = at::arange(length, at::TensorOptions(at::kLong).device(device));
  const at::Tensor distance = index.unsqueeze(1) - index.unsqueeze(0);
  return (distance >= 0).logical_and(distance < window);
}

// Runs `attend(q, k, v)` on heads of one width: the kernels want that, and zeros change neither products nor sums.
template <typename Attend>
at::Tensor with_equal_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Attend& attend) {
  const int64_t key = q.size(-1), value = v.size(-1), width = std::max(key, value);
  if (key == value) return attend(q, k, v);
  const auto padded = [&](const at::Tensor& x) { return at::constant_pad_nd(x, {0, width - x.size(-1)}); };
  return attend(padded(q), padded(k), padded(v)).slice(-1, 0, value);
}

// What FlashAttention-2 reads in words of 16 bytes may begin anywhere: a gradient is aligned on its way to it.
struct AlignedGradient : Function<AlignedGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.alias(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    return {aligned(grads[0])};
  }
};

double attention_scale(const at::Tensor& q) { return 1.0 / std::sqrt(double(q.size(-1))); }

bool flash_varlen_fits(const at::Tensor& q, const at::Tensor& v) {
  const int64_t dim = std::max(q.size(-1), v.size(-1));
  return q.is_cuda() && (q.scalar_type() == at::kHalf || q.scalar_type() == at::kBFloat16) && dim % 8 == 0 &&
         dim <= 256;
}

at::Tensor flash_varlen(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedLayout& layout,
                        int64_t window, std::optional<double> scale) {
  const std::optional<at::Tensor> offsets = layout.offsets_on_device;
  std::optional<int64_t> left, right;
  if (window > 0) left = window - 1, right = 0;
  return AlignedGradient::apply(std::get<0>(at::_flash_attention_forward(
      q, k, v, offsets, offsets, layout.max_length, layout.max_length, /*dropout_p=*/0.0, /*is_causal=*/true,
      /*return_debug_mask=*/false, scale, left, right)));
}

// Sequences of similar length run as one right-padded batch: a bucket grows while at most a quarter of it is padding.
std::vector<std::vector<int64_t>> length_buckets(const PackedLayout& layout) {
  const auto length = [&](int64_t i) { return layout.offsets[i + 1] - layout.offsets[i]; };
  std::vector<int64_t> order(layout.offsets.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<std::vector<int64_t>> buckets;
  int64_t tokens = 0;
  for (int64_t i : order) {
    if (length(i) == 0) break;
    const bool fits = !buckets.empty() && [&] {
      const int64_t padded = length(buckets.back().front()) * (int64_t(buckets.back().size()) + 1);
      return 4 * (tokens + length(i)) >= 3 * padded;
    }();
    if (!fits) buckets.emplace_back(), tokens = 0;
    buckets.back().push_back(i);
    tokens += length(i);
  }
  return buckets;
}

// One gather makes all rows of a bucket, and one undoes them all: slices, one a sequence, would write a gradient of all
// tokens each. What fills up a row, its first token again, comes after its tokens, which do not see it.
struct BucketIndex {
  int64_t rows = 0, length = 0;
  std::vector<int64_t> tokens;  // [rows * length]

  // All sequences are of one length: nothing is moved, because sorting by length left them in place.
  bool is_whole(const PackedLayout& layout) const {
    return rows * length == layout.offsets.back() && rows + 1 == int64_t(layout.offsets.size());
  }
};

BucketIndex bucket_index(const PackedLayout& layout, const std::vector<int64_t>& bucket) {
  const auto begin = [&](int64_t i) { return layout.offsets[i]; };
  BucketIndex index{int64_t(bucket.size()), begin(bucket.front() + 1) - begin(bucket.front()), {}};
  for (const int64_t i : bucket)
    for (int64_t t = 0; t < index.length; ++t) index.tokens.push_back(begin(i) + (begin(i) + t < begin(i + 1) ? t : 0));
  return index;
}

at::Tensor by_buckets(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedLayout& layout,
                      int64_t window) {
  std::vector<at::Tensor> parts;
  std::vector<int64_t> place(layout.offsets.back());  // of each token among those of the parts
  int64_t placed = 0;
  for (const std::vector<int64_t>& bucket : length_buckets(layout)) {
    const BucketIndex index = bucket_index(layout, bucket);
    if (index.is_whole(layout)) {
      const auto rows = [&](const at::Tensor& x) { return x.unflatten(0, {index.rows, index.length}); };
      return padded_attention(rows(q), rows(k), rows(v), window).flatten(0, 1);
    }
    const at::Tensor tokens = on_device(index.tokens, q.device());
    const auto rows = [&](const at::Tensor& x) {
      return gather_rows(x, tokens).unflatten(0, {index.rows, index.length});
    };
    parts.push_back(padded_attention(rows(q), rows(k), rows(v), window).flatten(0, 1));
    for (int64_t row = 0; row < index.rows; ++row, placed += index.length)
      for (int64_t t = layout.offsets[bucket[row]]; t < layout.offsets[bucket[row] + 1]; ++t)
        place[t] = placed + t - layout.offsets[bucket[row]];
  }
  if (parts.empty()) return at::zeros({q.size(0), q.size(1), v.size(-1)}, q.options());
  return gather_rows(parts.size() == 1 ? parts[0] : at::cat(parts), on_device(place, q.device()));
}

}  // namespace

PackedLayout packed_layout(const at::Tensor& cu_seqlens, at::Device device) {
  const at::Tensor host = cu_seqlens.to(at::TensorOptions(at::kCPU).dtype(at::kLong)).contiguous();
  if (host.dim() != 1 || host.numel() < 1)
    fail("cu_seqlens: got shape [{}], wanted [B + 1]", fmt::join(host.sizes(), ", "));
  PackedLayout layout;
  layout.offsets.assign(host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel());
  const std::vector<int64_t>& offsets = layout.offsets;
  if (offsets[0] != 0) fail("cu_seqlens: starts at {}, wanted 0", offsets[0]);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] < offsets[i])
      fail("cu_seqlens: decreases from {} to {} at index {}", offsets[i], offsets[i + 1], i + 1);
    layout.max_length = std::max(layout.max_length, offsets[i + 1] - offsets[i]);
  }
  std::vector<int64_t> positions(offsets.back());
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    std::iota(positions.begin() + offsets[i], positions.begin() + offsets[i + 1], int64_t{0});
  layout.positions = on_device(positions, device);
  if (!device.is_cpu()) {
    layout.offsets_on_device = on_device(host.to(at::kInt), device);
    layout.rows = std::make_shared<RaggedRows>(offsets, bucketed_bounds(offsets), device);
  }
  return layout;
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const PackedLayout& layout,
                            int64_t window, AttentionKernel first) {
  if (q.size(0) != layout.offsets.back()) {
    fail("packed attention: got {} tokens, but cu_seqlens ends at {}", q.size(0), layout.offsets.back());
  }
  if (first == AttentionKernel::batch_invariant) return cuda::batch_invariant_attention(q, k, v, layout, window);
  if (fits_cpu_attention(q, k, v)) return cpu_attention(q, k, v, layout.offsets, window);
  if (first == AttentionKernel::cudnn && cuda::fits_attention(q, k, v))
    return cuda::packed_attention(q, k, v, layout.rows, window);
  if (first == AttentionKernel::plain || !flash_varlen_fits(q, v)) return by_buckets(q, k, v, layout, window);
  const double scale = attention_scale(q);
  return with_equal_heads(q, k, v, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return flash_varlen(q, k, v, layout, window, scale);
  });
}

at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window) {
  const int64_t length = q.size(1);
  if (fits_cpu_attention(q, k, v)) {
    std::vector<int64_t> offsets(q.size(0) + 1);
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = int64_t(i) * length;
    return cpu_attention(q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1), offsets, window)
        .unflatten(0, {q.size(0), length});
  }
  const bool masked = window > 0 && window < length;
  const std::optional<at::Tensor> mask = masked ? std::optional(window_mask(length, window, q.device())) : std::nullopt;
  const double scale = attention_scale(q);
  return with_equal_heads(q, k, v, [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    return at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask,
                                            /*dropout_p=*/0.0, /*is_causal=*/!masked, scale,
                                            /*enable_gqa=*/q.size(2) != k.size(2))
        .transpose(1, 2);
  });
}

}  // namespace hexad::modeling
