// FP8 by strips and blocks of 128: scales and values by hand, the layouts that cuBLASLt takes, products; on GPUs the
// same bits as on the CPU.
#include "modeling/op/fp8/blocks.hpp"

#include "modeling/op/linear.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

using Tensors = std::vector<at::Tensor>;

const at::ScalarType kTypes[] = {at::kFloat8_e4m3fn, at::kFloat8_e5m2};
const Fp8Copies kCopies[] = {Fp8Copies::rows, Fp8Copies::columns, Fp8Copies::both};

at::Tensor bits_of(const at::Tensor& fp8) { return fp8.contiguous().view(at::kByte).to(at::kCPU); }
at::Tensor on_host(const at::Tensor& x) { return x.defined() ? x.to(at::kCPU) : x; }
Fp8Matrix on_host(const Fp8Matrix& x) { return {on_host(x.values), on_host(x.inverse), x.scaling, x.zero_rows}; }
// fp64, without its padding.
at::Tensor exact(const Fp8Matrix& x) {
  const at::Tensor all = without_scales(on_host(x));
  return all.narrow(0, 0, all.size(0) - x.zero_rows).to(at::kDouble);
}

// Of very different sizes, from strip to strip too; none is infinite in fp16.
at::Tensor inputs(int64_t rows, int64_t columns, at::ScalarType type = at::kFloat) {
  const at::Tensor steps = at::exp2(at::randint(-6, 6, {(columns + 63) / 64}).to(at::kFloat));
  return (at::randn({rows, columns}) * at::exp2(2 * at::randn({rows, 1})) *
          steps.repeat_interleave(64).narrow(0, 0, columns))
      .clamp(-6e4, 6e4)
      .to(type);
}

void check_equal(const Fp8Tensor& got, const Fp8Tensor& want) {
  CHECK(bool(got.scaling == want.scaling));
  CHECK(got.zero_rows == want.zero_rows);
  for (const auto& [a, b] : {std::pair{got.rows, want.rows}, {got.columns, want.columns}}) {
    REQUIRE(a.defined() == b.defined());
    if (b.defined()) CHECK(bool(a.scalar_type() == b.scalar_type()));
    if (b.defined()) CHECK(at::equal(bits_of(a), bits_of(b)));
  }
  for (const auto& [a, b] : {std::pair{got.row_inverse, want.row_inverse}, {got.column_inverse, want.column_inverse}}) {
    REQUIRE(a.defined() == b.defined());
    if (b.defined()) CHECK(at::equal(on_host(a), b));
  }
}

// values [M, K] and scales of the tile of `x` that one scale covers.
void check_tile(const at::Tensor& values, float inverse, const at::Tensor& x) {
  const at::ScalarType type = values.scalar_type();
  const float largest = x.numel() > 0 ? x.abs().max().item<float>() : 0, most = type == at::kFloat8_e5m2 ? 57344 : 448;
  const float factor = largest == 0 ? 1 : most / largest;
  CHECK(inverse == 1 / factor);
  const at::Tensor part = values.slice(0, 0, x.size(0)).slice(1, 0, x.size(1));
  CHECK(at::equal(bits_of(part), bits_of((x * factor).to(type))));
}

TEST_CASE("a strip of 128 channels of a token, and of 128 tokens of a channel, has its own scale; zeros pad") {
  at::manual_seed(1);
  for (const at::ScalarType type : kTypes) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 16}, {37, 304}, {128, 128}, {150, 64}}) {
      CAPTURE(rows);
      const at::Tensor x = inputs(rows, columns);
      const Fp8Tensor got = to_fp8_strips({x}, type, Fp8Copies::both);
      const int64_t rows16 = (rows + 15) / 16 * 16, down = (rows + 127) / 128, across = (columns + 127) / 128;
      CHECK(got.rows.sizes() == at::IntArrayRef({rows16, across * 128}));
      CHECK(got.row_inverse.sizes() == at::IntArrayRef({across, rows16}));
      CHECK(got.columns.sizes() == at::IntArrayRef({columns, down * 128}));
      CHECK(got.column_inverse.sizes() == at::IntArrayRef({down, columns}));
      CHECK(got.zero_rows == rows16 - rows);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t s = 0; s < across; ++s)
          check_tile(got.rows[r].view({1, -1}).slice(1, s * 128), got.row_inverse[s][r].item<float>(),
                     x[r].view({1, -1}).slice(1, s * 128, s * 128 + 128));
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t s = 0; s < down; ++s)
          check_tile(got.columns[c].view({1, -1}).slice(1, s * 128), got.column_inverse[s][c].item<float>(),
                     x.select(1, c).slice(0, s * 128, s * 128 + 128).reshape({1, -1}));
      CHECK(bits_of(got.rows.slice(1, columns)).count_nonzero().item<int64_t>() == 0);
      CHECK(bits_of(got.rows.slice(0, rows)).count_nonzero().item<int64_t>() == 0);
      CHECK(bits_of(got.columns.slice(1, rows)).count_nonzero().item<int64_t>() == 0);
    }
  }
}

TEST_CASE("a block of 128 x 128 has its own scale; weights apart and together are one") {
  at::manual_seed(2);
  const at::Tensor w = inputs(304, 272);
  const Fp8Tensor got = to_fp8_blocks({w}, Fp8Copies::both);
  CHECK(got.rows.sizes() == at::IntArrayRef({304, 384}));
  CHECK(got.row_inverse.sizes() == at::IntArrayRef({3, 4}));
  CHECK(got.columns.sizes() == at::IntArrayRef({272, 384}));
  CHECK(got.column_inverse.sizes() == at::IntArrayRef({3, 4}));
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      const auto tile = [](const at::Tensor& x, int64_t r, int64_t c) {
        return x.slice(0, r * 128, r * 128 + 128).slice(1, c * 128, c * 128 + 128);
      };
      check_tile(tile(got.rows, i, j), got.row_inverse[i][j].item<float>(), tile(w, i, j));
      check_tile(tile(got.columns, j, i), got.column_inverse[j][i].item<float>(), tile(w, i, j).t());
    }
    CHECK(got.row_inverse[i][3].item<float>() == 0);
  }
  CHECK(bits_of(got.rows.slice(1, 272)).count_nonzero().item<int64_t>() == 0);
  CHECK(bits_of(got.columns.slice(1, 304)).count_nonzero().item<int64_t>() == 0);
}

TEST_CASE("every device casts strips and blocks to the same bits, in every layout and from every type") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType source : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const auto& [rows, columns] :
           {std::pair<int64_t, int64_t>{1, 16}, {7, 48}, {128, 128}, {300, 272}, {2, 640}}) {
        CAPTURE(rows);
        at::manual_seed(rows);
        const at::Tensor x = inputs(rows, columns, source);
        // Rows with a distance between them.
        const at::Tensor wider = at::full({rows, columns + 32}, NAN, x.options()).to(device);
        const at::Tensor part = wider.slice(1, 16, columns + 16);
        part.copy_(x);
        for (const Fp8Copies copies : kCopies) {
          for (const at::ScalarType type : kTypes) {
            const Fp8Tensor want = to_fp8_strips({x}, type, copies);
            check_equal(to_fp8_strips({x.to(device)}, type, copies), want);
            check_equal(to_fp8_strips({part}, type, copies), want);
          }
          if (rows % 16 != 0) continue;
          const Fp8Tensor want = to_fp8_blocks({x}, copies);
          check_equal(to_fp8_blocks({x.to(device)}, copies), want);
          check_equal(to_fp8_blocks({part}, copies), want);
        }
      }
    }
  }
}

TEST_CASE("parts are the tensor that they make up, whether strips and blocks straddle them or not") {
  at::manual_seed(3);
  for (const at::Device device : test_devices()) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{32, 16, 144}, {128, 256, 128}}) {
      Tensors weights, grads;
      for (const int64_t size : sizes) {
        weights.push_back(inputs(size, 64).to(device));
        grads.push_back(inputs(50, size).to(device));
      }
      const at::Tensor w = at::cat(weights), g = at::cat(grads, 1);
      check_equal(to_fp8_blocks(weights, Fp8Copies::both), to_fp8_blocks({w.to(at::kCPU)}, Fp8Copies::both));
      check_equal(to_fp8_blocks(w.split_with_sizes(sizes), Fp8Copies::both),
                  to_fp8_blocks({w.to(at::kCPU)}, Fp8Copies::both));
      for (const Tensors& parts : {grads, g.split_with_sizes(sizes, 1)})
        check_equal(to_fp8_strips(parts, at::kFloat8_e5m2, Fp8Copies::both),
                    to_fp8_strips({g.to(at::kCPU)}, at::kFloat8_e5m2, Fp8Copies::both));
    }
  }
}

TEST_CASE("products of strips and blocks are those of what their values stand for, with a bias, in every type") {
  at::manual_seed(4);
  for (const at::Device device : test_devices()) {
    for (const auto& [tokens, width, out] :
         {std::tuple<int64_t, int64_t, int64_t>{50, 96, 32}, {1, 16, 16}, {128, 256, 272}, {300, 640, 48}}) {
      CAPTURE(tokens);
      const Fp8Tensor x = to_fp8_strips({inputs(tokens, width).to(device)}, at::kFloat8_e4m3fn, Fp8Copies::both);
      const Fp8Tensor w = to_fp8_blocks({inputs(out, width).to(device)}, Fp8Copies::both);
      const Fp8Tensor g = to_fp8_strips({inputs(tokens, out).to(device)}, at::kFloat8_e5m2, Fp8Copies::both);
      const std::pair<Fp8Matrix, Fp8Matrix> all[] = {
          {by_rows(x), by_rows(w)}, {by_rows(g), by_columns(w)}, {by_columns(g), by_columns(x)}};
      for (const auto& [a, b] : all) {
        const at::Tensor want = at::mm(exact(a), exact(b).t());
        const double bound = device.is_cpu() ? 1e-6 : 0x1p-11;
        CHECK(relative_distance(fp8_product(a, b, {}, at::kFloat, false), want) <= bound);
        CHECK(relative_distance(fp8_product(a, b, {}, at::kBFloat16, true), want) <= 4e-3);
        const at::Tensor bias = at::randn({b.values.size(0)}).to(device, at::kBFloat16) * 100;
        for (const at::Tensor& one : {bias, at::cat({bias, bias}).slice(0, 1, bias.size(0) + 1)})
          CHECK(relative_distance(fp8_product(a, b, one, at::kBFloat16, false), want + one.to(at::kCPU, at::kDouble)) <=
                6e-3);
      }
    }
  }
}

TEST_CASE("products of strips add to fp32 sums: whole, parts of a wider tensor, parts of ranks anywhere") {
  at::manual_seed(5);
  for (const at::Device device : test_devices()) {
    const double bound = device.is_cpu() ? 1e-6 : 0x1p-12;
    for (const int64_t tokens : {1, 50, 256}) {
      const Fp8Matrix g =
          by_columns(to_fp8_strips({at::randn({tokens, 64}).to(device)}, at::kFloat8_e5m2, Fp8Copies::columns));
      const Fp8Matrix x =
          by_columns(to_fp8_strips({at::randn({tokens, 32}).to(device)}, at::kFloat8_e4m3fn, Fp8Copies::columns));
      const at::Tensor product = at::mm(exact(g), exact(x).t());
      const at::Tensor flat = at::randn({4, 64 * 32 / 4 + 16}).to(device), plain = at::randn({64, 32}).to(device);
      const at::Tensor ranks = flat.slice(1, 16).view({4, 16, 32}), odd = at::randn({64, 33}).to(device).slice(1, 1);
      const at::Tensor many = at::randn({32, 2, 32}).to(device);
      for (const at::Tensor& sum : {plain, ranks, odd, many}) {
        const at::Tensor before = sum.to(at::kCPU, at::kDouble);
        for (int i = 0; i < 3; ++i) accumulate_fp8_product(sum, g, x);
        CHECK(relative_distance(sum, before + 3 * product.view(before.sizes())) <= bound);
      }
      const Fp8Matrix some = rows_of(g, 16, 32);
      CHECK(at::equal(exact(some), exact(g).slice(0, 16, 48)));
    }
  }
}

TEST_CASE("zeros have the factor 1; infinity and what is no number spoil their own strips alone") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType source : {at::kFloat, at::kBFloat16}) {
      const auto strips = [&](const at::Tensor& x) {
        return to_fp8_strips({x.to(device, source)}, at::kFloat8_e4m3fn, Fp8Copies::both);
      };
      const at::Tensor ones = at::ones({32, 160});
      const Fp8Tensor w = to_fp8_blocks({ones.to(device, source)}, Fp8Copies::both), zeros = strips(ones * 0);
      CHECK(at::equal(on_host(zeros.row_inverse), at::ones({2, 32})));
      const auto product = [&](const Fp8Tensor& x) {
        return on_host(fp8_product(by_rows(x), by_rows(w), {}, at::kFloat, false));
      };
      CHECK(at::equal(product(zeros), at::zeros({32, 32})));
      const Fp8Tensor tiny = strips(ones * 1e-38);
      CHECK(on_host(tiny.row_inverse).isfinite().all().item<bool>());
      CHECK(product(tiny).isfinite().all().item<bool>());
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        at::Tensor x = ones.clone();
        x[5][131] = bad;
        const at::Tensor y = product(strips(x)), finite = y.isfinite();
        CHECK_FALSE(finite[5].any().item<bool>());
        CHECK(finite.sum().item<int64_t>() == 31 * 32);
        const Fp8Tensor spoilt = strips(x);
        const at::Tensor of_weight =
            on_host(fp8_product(by_columns(spoilt), by_columns(strips(ones)), {}, at::kFloat, false));
        CHECK_FALSE(of_weight[131].isfinite().any().item<bool>());
        CHECK(of_weight.isfinite().sum().item<int64_t>() == 159 * 160);
      }
    }
  }
}

}  // namespace
}  // namespace hexad::modeling
