// The CPU's kernels against plain ATen in double precision, at shapes that no vector size divides.
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "plugins/native/cpu/attention.hpp"
#include "plugins/native/cpu/gemm.hpp"

using namespace hexad::native::cpu;

namespace {

template <typename T>
constexpr at::ScalarType kType = sizeof(T) == 4   ? at::kFloat
                                 : sizeof(T) == 2 ? at::kBFloat16
                                                  : at::kFloat8_e4m3fn;

// `terms`: sums of the absolute values of what was summed, so that cancellation does not count against the kernel.
double relative_error(const at::Tensor& got, const at::Tensor& want, const at::Tensor& terms) {
  return ((got.to(at::kDouble) - want).norm() / terms.norm()).item<double>();
}

template <typename T>
at::Tensor packed(const at::Tensor& weight) {
  const at::Tensor result = at::empty({packed_elements(weight.size(0), weight.size(1))}, weight.options());
  pack(static_cast<const T*>(weight.const_data_ptr()), weight.size(0), weight.size(1),
       static_cast<T*>(result.data_ptr()));
  return result;
}

template <typename T>
void check_products(int64_t rows, int64_t k, int64_t n, int64_t m) {
  CAPTURE(rows);
  CAPTURE(k);
  CAPTURE(n);
  const at::Tensor x = at::randn({rows, k}), bias = at::randn({n}), before = at::randn({rows, m});
  const at::Tensor a = at::randn({n, k}).to(kType<T>), b = at::randn({m, k}).to(kType<T>);
  const at::Tensor pa = packed<T>(a), pb = packed<T>(b), first = at::empty({rows, n}), second = before.clone();
  const Product products[] = {{pa.const_data_ptr(), bias.const_data_ptr<float>(), first.data_ptr<float>(), n, false},
                              {pb.const_data_ptr(), nullptr, second.data_ptr<float>(), m, true}};
  multiply<T>(x.const_data_ptr<float>(), rows, k, products);
  const at::Tensor wide = x.to(at::kDouble);
  const auto check = [&](const at::Tensor& got, const at::Tensor& weight, const at::Tensor& added) {
    const at::Tensor w = weight.to(at::kDouble).t(), plus = added.to(at::kDouble);
    CHECK(relative_error(got, wide.mm(w) + plus, wide.abs().mm(w.abs()) + plus.abs()) < 5e-7);
  };
  check(first, a, bias);
  check(second, b, before);

  // One row alone: the same bits.
  const at::Tensor alone = at::empty({1, n});
  const Product one[] = {{pa.const_data_ptr(), bias.const_data_ptr<float>(), alone.data_ptr<float>(), n, false}};
  multiply<T>(x.const_data_ptr<float>() + (rows - 1) * k, 1, k, one);
  CHECK(at::equal(alone[0], first[rows - 1]));

  std::vector<float> row(k);
  unpack_row(static_cast<const T*>(pa.const_data_ptr()), n - 1, k, row.data());
  CHECK(at::equal(at::tensor(row), a[n - 1].to(at::kFloat)));
}

// Two sequences in scattered blocks, one of them with a chunk of several queries.
template <typename T>
void check_attention(int64_t dim, int64_t block_size, int64_t window) {
  CAPTURE(dim);
  CAPTURE(block_size);
  CAPTURE(window);
  const AttentionShape shape{6, 2, dim, block_size, window};
  const int64_t length = 37, chunk = 9, blocks_each = (length + block_size - 1) / block_size;
  const auto store = [&](std::vector<int64_t> sizes) { return at::full(sizes, NAN, kType<T>); };
  const at::Tensor keys = store({2 * blocks_each, 2, dim, block_size}),
                   values = store({2 * blocks_each, 2, block_size, dim});
  const LayerCache<T> cache{static_cast<T*>(keys.data_ptr()), static_cast<T*>(values.data_ptr())};
  std::vector<int32_t> tables[2];
  for (int64_t i = 0; i < blocks_each; ++i) {
    tables[0].push_back(int32_t(2 * (blocks_each - i) - 1)), tables[1].push_back(int32_t(2 * i));
  }
  at::Tensor k[2], v[2];
  for (int s = 0; s < 2; ++s) {
    k[s] = at::randn({length, 2, dim}).to(kType<T>).to(at::kFloat),
    v[s] = at::randn({length, 2, dim}).to(kType<T>).to(at::kFloat);
    const SequenceRows whole[] = {{0, 0, length, tables[s].data()}};
    write_cache<T>(shape, whole, k[s].const_data_ptr<float>(), v[s].const_data_ptr<float>(), cache);
  }
  const at::Tensor q = at::randn({chunk + 1, 6, dim}), out = at::empty_like(q);
  const SequenceRows rows[] = {{0, length - chunk, chunk, tables[0].data()}, {chunk, length - 5, 1, tables[1].data()}};
  attend<T>(shape, rows, q.const_data_ptr<float>(), out.data_ptr<float>(), cache);
  for (int64_t row = 0; row <= chunk; ++row) {
    const int s = row == chunk, position = int(row == chunk ? length - 5 : length - chunk + row);
    const int64_t begin = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    const auto seen = [&](const at::Tensor& x) {  // [heads, keys, dim]
      return x.slice(0, begin, position + 1).to(at::kDouble).repeat_interleave(3, 1).transpose(0, 1);
    };
    const at::Tensor scores = seen(k[s]).matmul(q[row].to(at::kDouble).unsqueeze(2)) / std::sqrt(double(dim));
    const at::Tensor weight = scores.softmax(1), value = seen(v[s]);
    CHECK(relative_error(out[row], (weight * value).sum(1), (weight * value.abs()).sum(1)) < 1e-6);
  }
}

}  // namespace

TEST_CASE("matrix products") {
  for (const auto& [rows, k, n, m] : std::vector<std::array<int64_t, 4>>{
           {1, 16, 32, 32}, {1, 5, 3, 1}, {7, 59, 36, 97}, {13, 300, 65, 31}, {64, 1536, 40, 8}, {500, 700, 33, 64}}) {
    check_products<float>(rows, k, n, m);
    check_products<BFloat16>(rows, k, n, m);
  }
}

TEST_CASE("attention over a paged cache") {
  for (const int64_t dim : {2, 10, 64, 80}) {
    for (const int64_t block_size : {1, 4, 6, 8, 16, 48}) {
      for (const int64_t window : {0, 1, 7, 30, 1000}) {
        check_attention<float>(dim, block_size, window);
        check_attention<BFloat16>(dim, block_size, window);
        check_attention<Float8>(dim, block_size, window);
      }
    }
  }
}

TEST_CASE("e4m3 has the bits of ATen's, and 448 where ATen has no number") {
  for (int code = 0; code < 256; ++code) {
    CAPTURE(code);
    const Float8 x{uint8_t(code)};
    const float want = at::full({1}, code, at::kByte).view(at::kFloat8_e4m3fn).to(at::kFloat).item<float>();
    CHECK((to_float(x) == want || (std::isnan(want) && std::isnan(to_float(x)))));
    const VecF<4> lanes = load<4>(std::array<Float8, 4>{x, {0x38}, x, {0xb8}}.data());
    CHECK((lanes[0] == want || (std::isnan(want) && std::isnan(lanes[0]))));
    CHECK((lanes[1] == 1 && lanes[3] == -1));
  }
  // Every number, the halves between neighbours, what lies beside both, and all magnitudes.
  const at::Tensor codes = at::arange(0x7f, at::kByte).view(at::kFloat8_e4m3fn).to(at::kFloat);
  const at::Tensor halves = (codes.slice(0, 0, -1) + codes.slice(0, 1)) / 2;
  at::Tensor values = at::cat({codes, halves, at::tensor(std::vector<float>{464, 480, 1e9, INFINITY, 1e-40})});
  values = at::cat({values, values * (1 + 1e-6), values * (1 - 1e-6), at::randn({1000}) * at::logspace(-4, 4, 1000)});
  values = at::cat({values, -values}).to(at::kFloat).contiguous();
  const at::Tensor want = values.clamp(-448, 448).to(at::kFloat8_e4m3fn).view(at::kByte);
  for (int64_t i = 0; i < values.numel(); ++i) {
    const float value = values.const_data_ptr<float>()[i];
    CAPTURE(value);
    Float8 got;
    from_float(value, got);
    CHECK(got.bits == want.const_data_ptr<uint8_t>()[i]);
  }
  Float8 none;
  from_float(NAN, none);
  CHECK((none.bits & 0x7f) == 0x7f);
}
