// FP8 copies: the nearest numbers, their transposed copies, ranges; on GPUs the same bits as on the CPU.
#include "modeling/op/fp8/fp8.hpp"

#include "modeling/op/linear.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

const at::ScalarType kTypes[] = {at::kFloat8_e4m3fn, at::kFloat8_e5m2};

// All finite numbers of an FP8 type, in fp64, decoded by hand: (-1)^s 2^(e - bias) (1 + m / 2^bits).
at::Tensor numbers(at::ScalarType type) {
  const bool wide = type == at::kFloat8_e5m2;
  const int bits = wide ? 2 : 3, bias = wide ? 15 : 7, scale = 1 << bits;
  std::vector<double> all;
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> bits, mantissa = code % scale;
    if (wide ? exponent == 31 : code == 127) continue;  // infinity and what is no number
    const double value = exponent == 0 ? std::ldexp(double(mantissa) / scale, 1 - bias)
                                       : std::ldexp(1 + double(mantissa) / scale, exponent - bias);
    all.insert(all.end(), {value, -value});
  }
  return at::tensor(all, at::kDouble);
}

at::Tensor values_of(const at::Tensor& fp8) { return fp8.to(at::kCPU).to(at::kDouble); }
at::Tensor bits_of(const at::Tensor& fp8) { return fp8.contiguous().view(at::kByte).to(at::kCPU); }
float item(const at::Tensor& x) { return x.item<float>(); }

// Of very different sizes; none is infinite in fp16, for infinity leaves what is no number, of either sign.
at::Tensor inputs(int64_t rows, int64_t columns, at::ScalarType type = at::kFloat) {
  return (at::randn({rows, columns}) * at::exp2(4 * at::randn({rows, 1}))).clamp(-6e4, 6e4).to(type);
}

void check_equal(const Fp8Tensor& got, const Fp8Tensor& want) {
  CHECK(at::equal(got.range.largest.to(at::kCPU), want.range.largest));
  CHECK(at::equal(got.range.inverse.to(at::kCPU), want.range.inverse));
  CHECK(got.rows.defined() == want.rows.defined());
  CHECK(got.columns.defined() == want.columns.defined());
  if (want.rows.defined()) CHECK(at::equal(bits_of(got.rows), bits_of(want.rows)));
  if (want.columns.defined()) CHECK(at::equal(bits_of(got.columns), bits_of(want.columns)));
}

TEST_CASE("values are the nearest FP8 numbers to x times its factor, on the CPU") {
  at::manual_seed(1);
  for (const at::ScalarType type : kTypes) {
    const at::Tensor x = inputs(37, 48), all = numbers(type);
    const Fp8Tensor got = to_fp8({x}, 0, type, Fp8Copies::both);
    const double most = all.max().item<double>();
    CHECK(item(got.range.largest) == item(x.abs().max()));
    CHECK(item(got.range.inverse) * most == doctest::Approx(item(x.abs().max())));
    const at::Tensor scaled = (x * (float(most) / x.abs().max())).to(at::kDouble);
    const at::Tensor best = (scaled.unsqueeze(-1) - all).abs().amin(-1);
    CHECK(at::equal((values_of(got.rows) - scaled).abs(), best));
    CHECK(values_of(got.rows).abs().max().item<double>() == most);
  }
}

TEST_CASE("every device casts to the same bits, in every layout and from every type") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType source : {at::kFloat, at::kBFloat16, at::kHalf}) {
      for (const at::ScalarType type : kTypes) {
        for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 16}, {7, 48}, {128, 128}, {300, 272}}) {
          CAPTURE(rows);
          at::manual_seed(rows);
          const at::Tensor x = inputs(rows, columns, source);
          for (const Fp8Copies copies : {Fp8Copies::rows, Fp8Copies::columns, Fp8Copies::both}) {
            const Fp8Tensor want = to_fp8({x}, 0, type, copies);
            check_equal(to_fp8({x.to(device)}, 0, type, copies), want);
            // Rows with a distance between them.
            const at::Tensor wider = at::full({rows, columns + 32}, NAN, x.options()).to(device);
            const at::Tensor part = wider.slice(1, 16, columns + 16);
            part.copy_(x);
            check_equal(to_fp8({part}, 0, type, copies), want);
            // With a range that is known.
            check_equal(to_fp8({part}, 0, type, copies, {want.range.largest.to(device), want.range.inverse.to(device)}),
                        want);
          }
        }
      }
    }
  }
}

TEST_CASE("the transposed copy holds the same values, and zeros behind them") {
  at::manual_seed(2);
  for (const at::Device device : test_devices()) {
    for (const int64_t rows : {1, 16, 17, 129, 250}) {
      const Fp8Tensor x = to_fp8({inputs(rows, 160).to(device)}, 0, at::kFloat8_e4m3fn, Fp8Copies::both);
      CHECK(x.columns.size(1) == (rows + 15) / 16 * 16);
      CHECK(at::equal(bits_of(x.columns.slice(1, 0, rows)), bits_of(x.rows.t())));
      CHECK(bits_of(x.columns.slice(1, rows)).count_nonzero().item<int64_t>() == 0);
    }
  }
}

TEST_CASE("parts have one range, and are the tensor that they make up") {
  at::manual_seed(3);
  for (const at::Device device : test_devices()) {
    const std::vector<at::Tensor> weights = {inputs(32, 64), inputs(16, 64), inputs(144, 64)};
    const std::vector<at::Tensor> grads = {inputs(50, 32), inputs(50, 16), inputs(50, 144)};
    const auto there = [&](const std::vector<at::Tensor>& all) {
      std::vector<at::Tensor> moved;
      for (const at::Tensor& x : all) moved.push_back(x.to(device));
      return moved;
    };
    check_equal(to_fp8(there(weights), 0, at::kFloat8_e4m3fn, Fp8Copies::both),
                to_fp8({at::cat(weights)}, 0, at::kFloat8_e4m3fn, Fp8Copies::both));
    check_equal(to_fp8(there(grads), 1, at::kFloat8_e5m2, Fp8Copies::both),
                to_fp8({at::cat(grads, 1)}, 1, at::kFloat8_e5m2, Fp8Copies::both));
  }
}

TEST_CASE("zeros have the factor 1, tiny numbers a finite one; infinity and what is no number go into every product") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType source : {at::kFloat, at::kBFloat16}) {
      const auto cast = [&](const at::Tensor& x) {
        return to_fp8({x.to(device, source)}, 0, at::kFloat8_e4m3fn, Fp8Copies::both);
      };
      const at::Tensor ones = at::ones({32, 32});
      const auto product = [&](const at::Tensor& x) {
        return fp8_product(by_rows(cast(x)), by_rows(cast(ones)), {}, at::kBFloat16, false);
      };
      CHECK(item(cast(at::zeros({32, 32})).range.inverse) == 1.0f);
      CHECK(at::equal(product(at::zeros({32, 32})).to(at::kCPU), at::zeros({32, 32}, at::kBFloat16)));
      const Fp8Tensor tiny = cast(ones * 1e-38);
      CHECK(std::isfinite(item(tiny.range.inverse)));
      CHECK(values_of(tiny.rows).isfinite().all().item<bool>());
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        at::Tensor x = ones.clone();
        x[5][3] = bad;
        CHECK_FALSE(product(x).isfinite().any().item<bool>());
      }
    }
  }
}

// ||got - want|| / ||want|| of fp32 sums.
TEST_CASE("products are those of the values, with a bias, in every type") {
  at::manual_seed(4);
  for (const at::Device device : test_devices()) {
    const Fp8Tensor a = to_fp8({inputs(50, 96).to(device)}, 0, at::kFloat8_e4m3fn, Fp8Copies::rows);
    const Fp8Tensor b = to_fp8({inputs(32, 96).to(device)}, 0, at::kFloat8_e5m2, Fp8Copies::rows);
    const at::Tensor bias = at::randn({32}).to(device, at::kBFloat16);
    const double scale = double(item(a.range.inverse)) * item(b.range.inverse);
    const at::Tensor want = at::mm(values_of(a.rows), values_of(b.rows).t()) * scale;
    CHECK(relative_distance(fp8_product(by_rows(a), by_rows(b), {}, at::kFloat, false), want) <=
          (device.is_cpu() ? 1e-6 : 1e-4));
    for (const bool fast : {false, true})
      CHECK(relative_distance(fp8_product(by_rows(a), by_rows(b), {}, at::kBFloat16, fast), want) <= 4e-3);
    CHECK(relative_distance(fp8_product(by_rows(a), by_rows(b), bias, at::kBFloat16, false),
                            want + bias.to(at::kCPU, at::kDouble)) <= 4e-3);
  }
}

TEST_CASE("products add to fp32 sums: whole, parts of a wider tensor, parts of ranks anywhere") {
  at::manual_seed(5);
  for (const at::Device device : test_devices()) {
    const double bound = device.is_cpu() ? 1e-6 : 0x1p-12;  // Hopper's FP8 products keep about 14 bits of a sum
    for (const int64_t tokens : {1, 50, 256}) {
      const Fp8Tensor g = to_fp8({at::randn({tokens, 64}).to(device)}, 0, at::kFloat8_e5m2, Fp8Copies::columns);
      const Fp8Tensor x = to_fp8({at::randn({tokens, 32}).to(device)}, 0, at::kFloat8_e4m3fn, Fp8Copies::columns);
      const double scale = double(item(g.range.inverse)) * item(x.range.inverse);
      const at::Tensor product = at::mm(values_of(g.columns), values_of(x.columns).t()) * scale;
      const at::Tensor flat = at::randn({4, 64 * 32 / 4 + 16}).to(device), plain = at::randn({64, 32}).to(device);
      const at::Tensor ranks = flat.slice(1, 16).view({4, 16, 32}), odd = at::randn({64, 33}).to(device).slice(1, 1);
      for (const at::Tensor& sum : {plain, ranks, odd}) {
        const at::Tensor before = sum.to(at::kCPU, at::kDouble);
        for (int i = 0; i < 3; ++i) accumulate_fp8_product(sum, by_columns(g), by_columns(x));
        CHECK(relative_distance(sum, before + 3 * product.view(before.sizes())) <= bound);
      }
    }
  }
}

}  // namespace
}  // namespace hexad::modeling
