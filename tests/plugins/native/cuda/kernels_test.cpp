// Norms, rope with cache append, SwiGLU and block copies against plain ATen in double precision.
#include "plugins/native/cuda/elementwise.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/cuda/decode/pool.hpp"
#include "plugins/native/cuda/attention/rope_append.hpp"
#include "plugins/native/cuda/skinny.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using namespace hexad::native::cuda;

namespace {

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return wide(x) * (wide(x).square().mean(-1, true) + eps).rsqrt() * wide(weight);
}

// x [rows, heads, dim] by angles [rows, dim / 2].
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(2) / 2;
  const at::Tensor a = x.slice(2, 0, half), b = x.slice(2, half), c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  return at::cat({a * c - b * s, b * c + a * s}, 2);
}

void check_rope(int rows, int heads, int kv_heads, int dim, int block_size, bool norm) {
  CAPTURE(rows);
  CAPTURE(heads);
  CAPTURE(dim);
  CAPTURE(block_size);
  CAPTURE(norm);
  const int all = heads + 2 * kv_heads, blocks = rows / block_size + 3;
  const at::Tensor qkv = random({rows, all, dim});
  const at::Tensor q_norm = norm ? random({dim}) : at::Tensor(), k_norm = norm ? random({dim}) : at::Tensor();
  const at::Tensor angles = at::rand({500, dim / 2}, at::TensorOptions(at::kFloat).device(kGpu)) * 6;
  const at::Tensor cos = angles.cos(), sin = angles.sin();
  std::mt19937 rng(rows);
  std::vector<int32_t> positions, slots(rows), places(blocks * block_size);
  for (int i = 0; i < blocks * block_size; ++i) places[i] = i;
  std::shuffle(places.begin(), places.end(), rng);
  for (int row = 0; row < rows; ++row) positions.push_back(int32_t(rng() % 500)), slots[row] = places[row];
  if (rows > 1) slots[rows / 2] = -1;
  const at::Tensor keys = poisoned({blocks, kv_heads, block_size, dim}), values = keys.clone(), mine = qkv.clone();
  const at::Tensor device_positions = on_gpu(positions), device_slots = on_gpu(slots);
  const auto run = [&](const at::Tensor& in, const LayerPools& pools) {
    rope_append(bf16(in), {bf16(q_norm), bf16(k_norm)}, cos.const_data_ptr<float>(), sin.const_data_ptr<float>(),
                device_positions.const_data_ptr<int32_t>(), device_slots.const_data_ptr<int32_t>(), pools,
                {rows, heads, kv_heads, dim, block_size, 1e-5f}, nullptr);
  };
  run(mine, {keys.data_ptr(), values.data_ptr()});
  synchronize();
  const at::Tensor x = wide(qkv);
  at::Tensor q = x.slice(1, 0, heads), k = x.slice(1, heads, heads + kv_heads);
  const at::Tensor v = x.slice(1, heads + kv_heads);
  if (norm) q = normed(q, q_norm, 1e-5), k = normed(k, k_norm, 1e-5);
  const at::Tensor at_rows = on_gpu(positions).to(at::kLong);
  const at::Tensor c = wide(cos).index_select(0, at_rows), s = wide(sin).index_select(0, at_rows);
  CHECK(distance(mine.slice(1, 0, heads), rotated(q, c, s)) < kRounded);
  k = rotated(k, c, s);
  std::vector<int32_t> block_of, offset_of, row_of;
  for (int row = 0; row < rows; ++row) {
    if (slots[row] < 0) continue;
    row_of.push_back(row), block_of.push_back(slots[row] / block_size), offset_of.push_back(slots[row] % block_size);
  }
  const at::Tensor r = on_gpu(row_of).to(at::kLong), bl = on_gpu(block_of).to(at::kLong),
                   of = on_gpu(offset_of).to(at::kLong);
  const auto stored = [&](const at::Tensor& pool) { return pool.permute({0, 2, 1, 3}).index({bl, of}); };
  CHECK(distance(stored(keys), k.index_select(0, r)) < kRounded);
  CHECK(distance(stored(values), v.index_select(0, r)) < kRounded);
  // Nothing else was written.
  CHECK(keys.isnan().sum().item<int64_t>() == keys.numel() - int64_t(row_of.size()) * kv_heads * dim);
  CHECK(values.isnan().sum().item<int64_t>() == values.numel() - int64_t(row_of.size()) * kv_heads * dim);

  // In e4m3: the bits of ATen's cast of what is there in bf16, of large and small numbers too.
  const at::Tensor powers = at::logspace(-5, 4, all, 10, at::TensorOptions(at::kFloat).device(kGpu)).view({all, 1});
  const at::Tensor scaled =
      (qkv * powers.index_select(0, at::randperm(all, powers.options().dtype(at::kLong)))).to(at::kBFloat16);
  const at::Tensor in_bf16 = scaled.clone(), in_fp8 = scaled.clone();
  const at::Tensor narrow_keys = at::full_like(keys, 0x5a, at::TensorOptions(at::kByte)),
                   narrow_values = narrow_keys.clone();
  keys.fill_(NAN), values.fill_(NAN);
  run(in_bf16, {keys.data_ptr(), values.data_ptr()});
  run(in_fp8, {narrow_keys.data_ptr(), narrow_values.data_ptr(), /*fp8=*/true});
  synchronize();
  CHECK(at::equal(in_fp8, in_bf16));
  for (const auto& [narrow, pool] : {std::pair{narrow_keys, keys}, {narrow_values, values}}) {
    const at::Tensor cast = pool.to(at::kFloat).clamp(-448, 448).to(at::kFloat8_e4m3fn).view(at::kByte);
    const at::Tensor want = cast.masked_fill(pool.isnan(), 0x5a);
    CHECK(at::equal(narrow, want));
    CHECK(((narrow.bitwise_and(0x7f) == 0x7f).sum().item<int64_t>() == 0));
  }
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: norms of embedded tokens, of sums, and of chosen rows") {
  for (const auto& [rows, hidden] :
       {std::pair{1, 8}, {3, 256}, {7, 1000}, {5, 1536}, {33, 4096}, {9, 5120}, {4, 16384}}) {
    CAPTURE(rows);
    CAPTURE(hidden);
    const NormShape shape{rows, hidden, 1e-5f};
    const at::Tensor table = random({50, hidden}), weight = random({hidden}), delta = random({rows, hidden});
    std::vector<int32_t> ids, tokens;
    const std::vector<int32_t> draws = {41, -1, 17};
    for (int row = 0; row < rows; ++row) ids.push_back(row % 4 < 3 ? row * 7 % 50 : ~(row / 4 % 3));
    for (const int32_t id : ids) tokens.push_back(std::max(id < 0 ? draws[~id] : id, 0));
    const at::Tensor residual = poisoned({rows, hidden}, at::kFloat), out = poisoned({rows, hidden});
    const at::Tensor device_ids = on_gpu(ids), device_draws = on_gpu(draws);
    embed_norm(bf16(table), device_ids.const_data_ptr<int32_t>(), device_draws.const_data_ptr<int32_t>(), bf16(weight),
               residual.data_ptr<float>(), bf16(out), shape, nullptr);
    synchronize();
    const at::Tensor embedded = wide(table).index_select(0, on_gpu(tokens).to(at::kLong));
    CHECK(distance(residual, embedded) == 0);
    CHECK(distance(out, normed(embedded, weight, 1e-5)) < kRounded);

    out.fill_(NAN);
    add_norm(bf16(delta), bf16(weight), residual.data_ptr<float>(), bf16(out), shape, nullptr);
    synchronize();
    const at::Tensor sum = embedded + wide(delta);
    CHECK(distance(residual, sum) < 1e-6);
    CHECK(distance(out, normed(sum, weight, 1e-5)) < kRounded);

    std::vector<int32_t> chosen;
    for (int row = rows - 1; row >= 0; row -= 2) chosen.push_back(row);
    const at::Tensor part = poisoned({int64_t(chosen.size()), hidden}), picked = on_gpu(chosen);
    add_norm_of_rows(picked.const_data_ptr<int32_t>(), bf16(delta), bf16(weight), residual.const_data_ptr<float>(),
                     bf16(part), {int(chosen.size()), hidden, 1e-5f}, nullptr);
    synchronize();
    CHECK(distance(part, normed(sum + wide(delta), weight, 1e-5).index_select(0, picked.to(at::kLong))) < kRounded);
    CHECK(distance(residual, sum) < 1e-6);  // it is read alone
  }
}

TEST_CASE("native: q/k norm, rope and cache append") {
  for (const bool norm : {false, true}) {
    check_rope(37, 12, 2, 128, 16, norm);
    check_rope(5, 9, 3, 64, 1, norm);
    check_rope(1, 4, 4, 64, 7, norm);
    check_rope(130, 32, 8, 128, 48, norm);
  }
}

TEST_CASE("native: SwiGLU of a fused gate and up") {
  for (const auto& [rows, width] : {std::pair{1, 8}, {3, 1000}, {17, 8960}, {5, 14336}}) {
    CAPTURE(rows);
    CAPTURE(width);
    const at::Tensor x = random({rows, 2 * width}, 4), out = poisoned({rows, width});
    x.select(0, 0).slice(0, 0, 4).copy_(at::tensor(std::vector<float>{-90, 90, -1e4, 1e4}, at::kFloat));
    swiglu(bf16(x), bf16(out), rows, width, nullptr);
    synchronize();
    const at::Tensor gate = wide(x).slice(1, 0, width), up = wide(x).slice(1, width);
    CHECK(distance(out, gate * gate.sigmoid() * up) < kRounded);
  }
}

TEST_CASE("native: products of few rows, plain and with SwiGLU") {
  for (const auto& [rows, in, out] : std::vector<std::array<int, 3>>{{1, 256, 16},
                                                                     {3, 1536, 48},
                                                                     {8, 4096, 6144},
                                                                     {9, 512, 32},
                                                                     {16, 3072, 1024},
                                                                     {7, 14336, 80},
                                                                     {16, 8960, 1536}}) {
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    REQUIRE(is_skinny(rows, in, out));
    const at::Tensor x = random({rows, in}), weight = random({2 * out, in}, 0.05), gate = weight.slice(0, 0, out);
    const at::Tensor bias = random({out});
    const at::Tensor y = poisoned({rows + 1, out}), biased = y.clone(), wide_y = poisoned({rows + 1, out}, at::kFloat),
                     z = y.clone();
    multiply_skinny(bf16(x), bf16(gate), /*bias=*/nullptr, bf16(y), rows, in, out, nullptr);
    multiply_skinny(bf16(x), bf16(gate), bf16(bias), bf16(biased), rows, in, out, nullptr);
    multiply_skinny(bf16(x), bf16(gate), wide_y.data_ptr<float>(), rows, in, out, nullptr);
    swiglu_skinny(bf16(x), bf16(weight), bf16(z), rows, in, out, nullptr);
    synchronize();
    const at::Tensor both = wide(x).mm(wide(weight).t()), g = both.slice(1, 0, out);
    CHECK(distance(y.slice(0, 0, rows), g) < kRounded);
    CHECK(distance(biased.slice(0, 0, rows), g + wide(bias)) < kRounded);
    CHECK(distance(wide_y.slice(0, 0, rows), g) < 1e-5);
    CHECK(distance(z.slice(0, 0, rows), g * g.sigmoid() * both.slice(1, out)) < kRounded);
    for (const at::Tensor& result : {y, biased, wide_y, z}) CHECK(result[rows].isnan().all().item<bool>());
  }
  CHECK(!is_skinny(17, 256, 16));
  CHECK(!is_skinny(1, 128, 16));
  CHECK(!is_skinny(1, 256, 24));
}

TEST_CASE("native: block copies keep their order where one block is read and written") {
  const std::vector<std::pair<int32_t, int32_t>> pairs = {{0, 10},  {0, 11}, {1, 12}, {2, 0},
                                                          {12, 13}, {3, 12}, {5, 39}};
  const at::Tensor words = random({6, 40, 2, 4, 8}), bytes = (words * 100).to(at::kChar);  // as large as e4m3
  for (const at::Tensor& pools : {words, bytes}) {
    const at::Tensor want = pools.clone();
    for (const auto& [from, to] : pairs) want.select(1, to).copy_(want.select(1, from).clone());
    copy_pool_blocks(pools, pairs);
    synchronize();
    CHECK(at::equal(pools, want));
  }
}

TEST_SUITE_END();
