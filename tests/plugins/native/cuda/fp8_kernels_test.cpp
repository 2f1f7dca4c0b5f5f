// Casts to FP8, norms and SwiGLU that end in one, and products in FP8, against plain ATen.
#include "plugins/native/cuda/elementwise.hpp"
#include "plugins/native/cuda/fp8/fp8_linear.hpp"
#include "plugins/native/cuda/norm.hpp"
#include "plugins/native/model/fp8_rows.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using namespace hexad::native;
using namespace hexad::native::cuda;

namespace {

// One row and one value more than are written, which tell when they are.
struct Guarded {
  at::Tensor bytes, scales;
  int64_t rows, width;
  Guarded(int64_t rows_, int64_t width_)
      : bytes(at::full({rows_ * width_ + 16}, 0x7f, at::TensorOptions(at::kByte).device(kGpu))),
        scales(poisoned({rows_ + 1}, at::kFloat)),
        rows(rows_),
        width(width_) {}
  Rows view() const {
    return {bytes.slice(0, 0, rows * width).view({rows, width}).view(at::kFloat8_e4m3fn), scales.slice(0, 0, rows)};
  }
  Fp8Rows result() const { return {view().values, view().scales}; }
  bool untouched() const {
    return (bytes.slice(0, rows * width) == 0x7f).all().item<bool>() && scales[rows].isnan().item<bool>();
  }
};

Fp8Rows on_cpu(const at::Tensor& x) {
  const at::Tensor host = x.to(at::kCPU);
  const Fp8Rows rows = empty_fp8_rows(x.size(0), x.size(1), at::kCPU);
  to_fp8_rows(host, rows);
  return rows;
}

at::Tensor bytes_of(const at::Tensor& values) { return values.view(at::kByte).cpu(); }

// Every value within half a step of `want`, which may itself be off by `slack` of it; scales are those of the largest.
void check_cast(const Guarded& got, const at::Tensor& want, double slack) {
  CHECK(got.untouched());
  const at::Tensor back = wide(got.view().values) * wide(got.view().scales).unsqueeze(1);
  const at::Tensor largest = want.abs().amax(1, true), scale = largest / 448;
  CHECK(distance(got.view().scales, scale.squeeze(1)) < slack);
  const at::Tensor bound = want.abs() * (1.0 / 16 + 2 * slack) + scale / 1024 + 1e-12;
  CHECK(((back - want).abs() <= bound).all().item<bool>());
  // The nearest of all values but for ties and what slack decides.
  const Fp8Rows nearest = on_cpu(want.to(at::kFloat));
  const double equal = (bytes_of(got.view().values) == bytes_of(nearest.values)).to(at::kDouble).mean().item<double>();
  CHECK(equal > 0.98);
}

at::Tensor random_values(int64_t rows, int64_t width) { return random({rows, width}, 3); }

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: rows cast to FP8 on a GPU are those of a CPU, bit for bit") {
  for (const auto& [rows, width] : {std::pair{1, 8},
                                    {5, 64},
                                    {3, 1024},
                                    {7, 1032},
                                    {130, 4096},
                                    {9, 8960},
                                    {4, 14336},
                                    {3, 16384},
                                    {2, 29568},
                                    {2, 32768}}) {
    CAPTURE(rows);
    CAPTURE(width);
    const at::Tensor x = random_values(rows, width);
    if (rows > 2) {
      x[0].zero_(), x[1].mul_(1e-30);
      x[2][width - 1] = 3e38;
    }
    const Guarded out(rows, width);
    cast_rows(x, out.view().values, out.view().scales);
    synchronize();
    const Fp8Rows want = on_cpu(x);
    CHECK(out.untouched());
    CHECK(at::equal(bytes_of(out.view().values), bytes_of(want.values)));
    CHECK(at::equal(out.view().scales.cpu(), want.scales));
  }
  // What is not finite makes its row so, and no other.
  const at::Tensor x = random_values(4, 520);
  x[1][519] = INFINITY, x[2][3] = NAN;
  const Fp8Rows rows = empty_fp8_rows(4, 520, kGpu);
  to_fp8_rows(x, rows);
  synchronize();
  const at::Tensor bad = from_fp8_rows(rows).isnan().any(1).cpu();
  for (int row = 0; row < 4; ++row) CHECK(bad[row].item<bool>() == (row == 1 || row == 2));
  // Weights in a buffer of many begin anywhere.
  const at::Tensor odd = random({8 * 256 + 1}).slice(0, 1).view({8, 256});
  const Fp8Rows shifted = empty_fp8_rows(8, 256, kGpu);
  to_fp8_rows(odd, shifted);
  synchronize();
  CHECK(at::equal(bytes_of(shifted.values), bytes_of(on_cpu(odd).values)));
}

TEST_CASE("native: norms that end in FP8") {
  for (const auto& [rows, hidden] : {std::pair{1, 64}, {3, 256}, {17, 1536}, {33, 4096}, {9, 5120}, {4, 16384}}) {
    CAPTURE(rows);
    CAPTURE(hidden);
    const NormShape shape{rows, hidden, 1e-5f};
    const at::Tensor table = random({50, hidden}), weight = random({hidden}), delta = random({rows, hidden});
    std::vector<int32_t> ids;
    for (int row = 0; row < rows; ++row) ids.push_back(row * 7 % 50);
    const at::Tensor residual = poisoned({rows, hidden}, at::kFloat), device_ids = on_gpu(ids);
    const auto normed = [&](const at::Tensor& x) {
      return x * (x.square().mean(-1, true) + 1e-5).rsqrt() * wide(weight);
    };
    const Guarded first(rows, hidden), second(rows, hidden);
    embed_norm(bf16(table), device_ids.const_data_ptr<int32_t>(), /*draws=*/nullptr, bf16(weight),
               residual.data_ptr<float>(), first.view().fp8(), shape, nullptr);
    synchronize();
    const at::Tensor embedded = wide(table).index_select(0, device_ids.to(at::kLong));
    CHECK(distance(residual, embedded) == 0);
    check_cast(first, normed(embedded), 1e-5);
    add_norm(bf16(delta), bf16(weight), residual.data_ptr<float>(), second.view().fp8(), shape, nullptr);
    synchronize();
    CHECK(distance(residual, embedded + wide(delta)) < 1e-6);
    check_cast(second, normed(embedded + wide(delta)), 1e-5);
  }
}

TEST_CASE("native: SwiGLU that ends in FP8") {
  for (const auto& [rows, width] : {std::pair{1, 64}, {3, 1088}, {17, 8960}, {5, 14336}, {2, 32768}}) {
    CAPTURE(rows);
    CAPTURE(width);
    const at::Tensor x = random({rows, 2 * width}, 4);
    x.select(0, 0).slice(0, 0, 4).copy_(at::tensor(std::vector<float>{-90, 90, -1e4, 1e4}, at::kFloat));
    const Guarded out(rows, width);
    swiglu_fp8(bf16(x), out.view().fp8(), rows, width, nullptr);
    synchronize();
    const at::Tensor gate = wide(x).slice(1, 0, width), up = wide(x).slice(1, width);
    check_cast(out, gate * gate.sigmoid() * up, 1e-5);
  }
}

TEST_CASE("native: products of rows in FP8") {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{
           {17, 64, 64}, {24, 256, 640}, {33, 384, 256}, {512, 4096, 6144}, {512, 14336, 4096}, {2048, 1536, 17920}}) {
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    // Rows and channels of very different sizes: a scale of a tensor would not do.
    const at::Tensor sizes = at::pow(10, at::randint(-3, 3, {rows, 1}, at::TensorOptions(at::kFloat).device(kGpu)));
    const at::Tensor x = (random({rows, in}) * sizes).to(at::kBFloat16), weight = random({out, in}, 0.05);
    weight.slice(0, 0, 16).mul_(1000);
    const Fp8Rows w = empty_fp8_rows(out, in, kGpu), a = empty_fp8_rows(rows, in, kGpu);
    to_fp8_rows(weight, w), to_fp8_rows(x, a);
    const at::Tensor bias = random({out}), y = poisoned({rows + 1, out}), biased = y.clone();
    multiply_fp8({a.values, a.scales}, w.values, w.scales, {}, y.narrow(0, 0, rows));
    multiply_fp8({a.values, a.scales}, w.values, w.scales, bias, biased.narrow(0, 0, rows));
    synchronize();
    const at::Tensor want = wide(from_fp8_rows(a)).mm(wide(from_fp8_rows(w)).t());
    const auto row_by_row = [&](const at::Tensor& got, const at::Tensor& exact) {
      return ((wide(got) - exact).norm(2, {1}) / exact.norm(2, {1})).max().item<double>();
    };
    // Rounded once to bf16; the tensor cores' own sums keep 14 bits (fast accumulation), so long ones are off by more.
    const double bound = 4e-3 + 5e-5 * std::sqrt(double(in));
    CHECK(row_by_row(y.slice(0, 0, rows), want) < bound);
    CHECK(row_by_row(biased.slice(0, 0, rows), want + wide(bias)) < bound + 2e-3);
    CHECK(row_by_row(y.slice(0, 0, rows).slice(1, 16), want.slice(1, 16)) < bound);
    for (const at::Tensor& result : {y, biased}) CHECK(result[rows].isnan().all().item<bool>());
    // A row does not depend on the others.
    const at::Tensor changed = y.clone();
    a.values.view(at::kByte)[0].fill_(0x38);
    multiply_fp8({a.values, a.scales}, w.values, w.scales, {}, changed.narrow(0, 0, rows));
    synchronize();
    CHECK(at::equal(changed.slice(0, 1, rows), y.slice(0, 1, rows)));
  }
}

TEST_CASE("native: products of few rows with a weight in FP8, plain and with SwiGLU") {
  for (const auto& [rows, in, out] : std::vector<std::array<int, 3>>{{1, 64, 16},
                                                                     {3, 1536, 48},
                                                                     {8, 4096, 6144},
                                                                     {9, 576, 32},
                                                                     {16, 3072, 1024},
                                                                     {7, 14336, 80},
                                                                     {5, 128, 64},
                                                                     {16, 8960, 1536}}) {
    CAPTURE(rows);
    CAPTURE(in);
    CAPTURE(out);
    const at::Tensor x = random({rows, in}), weight = random({2 * out, in}, 0.05), bias = random({out});
    weight.slice(0, 0, 1).mul_(100);
    const Fp8Rows w = empty_fp8_rows(2 * out, in, kGpu);
    to_fp8_rows(weight, w);
    // All 254 finite bytes, the smallest numbers too.
    for (int64_t byte = 0; byte < std::min<int64_t>(256, in); ++byte)
      if ((byte & 0x7f) != 0x7f) w.values.view(at::kByte)[out + 1][byte] = byte;
    const at::Tensor y = poisoned({rows + 1, out}), biased = y.clone(), z = y.clone();
    const at::Tensor gate = w.values.slice(0, 0, out), scales = w.scales.slice(0, 0, out);
    multiply_fp8({x, {}}, gate, scales, {}, y.narrow(0, 0, rows));
    multiply_fp8({x, {}}, gate, scales, bias, biased.narrow(0, 0, rows));
    swiglu_skinny(bf16(x), fp8_weight(w.values, w.scales), bf16(z), rows, in, out, nullptr);
    synchronize();
    const at::Tensor both = wide(x).mm(wide(from_fp8_rows(w)).t()), g = both.slice(1, 0, out);
    CHECK(distance(y.slice(0, 0, rows), g) < kRounded);
    CHECK(distance(y.slice(0, 0, rows).slice(1, 1), g.slice(1, 1)) < kRounded);
    CHECK(distance(biased.slice(0, 0, rows), g + wide(bias)) < kRounded);
    const at::Tensor activated = g * g.sigmoid() * both.slice(1, out), got = z.slice(0, 0, rows);
    CHECK(distance(got, activated) < kRounded);
    CHECK(distance(got.slice(1, 1, 2), activated.slice(1, 1, 2)) < 2 * kRounded);
    CHECK(distance(got.slice(1, 2), activated.slice(1, 2)) < kRounded);
    for (const at::Tensor& result : {y, biased, z}) CHECK(result[rows].isnan().all().item<bool>());
  }
}

TEST_SUITE_END();
