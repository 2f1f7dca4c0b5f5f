// Casts that stay: the bits of casts that are made every time, read in place of the weights, within the bytes that are
// given, until they are cleared.
#include "modeling/op/fp8/casts.hpp"

#include <limits>

#include "modeling/op/checkpoint.hpp"
#include "modeling/op/linear.hpp"
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/leaves.hpp"

namespace hexad::modeling {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
const Fp8 kFormats[] = {Fp8::e4m3, Fp8::hybrid, Fp8::blockwise_e4m3, Fp8::blockwise_hybrid};
const std::vector<int64_t> kRows = {96, 16, 48};

bool same(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return x.equal(y); });
}

// Two linears after each other, over weights that a backend overwrites through `flat` and `last`.
struct Model {
  at::Tensor flat, last;
  Tensors weights, end;
  Fp8 format;
  Fp8Casts* casts;

  Model(const at::TensorOptions& options, Fp8 fp8, Fp8Casts* in)
      : flat((at::randn({160, 64}) * 0.05).to(options)),
        last((at::randn({32, 160}) * 0.05).to(options)),
        weights(leaves_of(flat, kRows)),
        end(leaves_of(last, {32})),
        format(fp8),
        casts(in) {}

  LinearOptions options() const {
    LinearOptions result;
    result.fp8 = format, result.fp8_casts = casts;
    return result;
  }
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor between = at::cat(apply_linears(x, weights, Tensors(3), options()), 1);
    return apply_linear(at::silu(between), end[0], {}, options());
  }
  // Output, and the gradients of x and all weights.
  Tensors run(const at::Tensor& x, bool again = false) const {
    Tensors wanted = {x.detach().clone().requires_grad_(true)}, all = weights;
    all.push_back(end[0]);
    wanted.insert(wanted.end(), all.begin(), all.end());
    const auto pass = [this](const Tensors& in) -> Tensors { return {forward(in[0])}; };
    const at::Tensor y = again ? checkpoint(pass, {wanted[0]}, all)[0] : forward(wanted[0]);
    Tensors result = torch::autograd::grad({y}, wanted, {at::ones_like(y) * y.detach()});
    result.push_back(y.detach());
    return result;
  }
  void fill(double value) const { at::Tensor(flat).fill_(value), at::Tensor(last).fill_(value); }
  void scale(double factor) const { at::Tensor(flat).mul_(factor), at::Tensor(last).mul_(factor); }
};

template <typename Body>
void everywhere(Body&& body) {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const Fp8 format : kFormats) {
        CAPTURE(device.str());
        CAPTURE(at::toString(type));
        CAPTURE(int(format));
        at::manual_seed(6);
        body(at::TensorOptions(device).dtype(type), format);
      }
    }
  }
}

// Of both layouts: values, and of blocks their scales.
int64_t bytes_of(const Model& model) {
  int64_t bytes = 0;
  Fp8Casts counting;
  Model other = model;
  other.casts = &counting;
  counting.keep(kAll);
  other.run(at::ones({16, 64}, model.flat.options()));
  bytes = counting.bytes();
  return bytes;
}

TEST_CASE("micro-batches that share casts have the bits of those that cast, whatever stays") {
  everywhere([](const at::TensorOptions& options, Fp8 format) {
    Fp8Casts casts;
    Model model(options, format, nullptr);
    Tensors xs, want;
    for (const int64_t tokens : {33, 16, 80}) xs.push_back(at::randn({tokens, 64}).to(options));
    for (const at::Tensor& x : xs)
      for (const at::Tensor& t : model.run(x)) want.push_back(t);
    const int64_t all = bytes_of(model);
    model.casts = &casts;
    for (const int64_t most : {int64_t{0}, all / 3, all - 1, all, kAll}) {
      CAPTURE(most);
      casts.keep(most);
      Tensors got;
      for (const at::Tensor& x : xs)
        for (const at::Tensor& t : model.run(x, /*again=*/x.size(0) == 16)) got.push_back(t);
      CHECK(same(got, want));
      CHECK(casts.bytes() <= most);
      CHECK((casts.bytes() > 0) == (most > 0));
      CHECK((casts.bytes() == all) == (most >= all));
      const at::NoGradGuard no_grad;
      CHECK(model.forward(xs[0]).equal(want[5]));
      casts.clear();
      CHECK(casts.bytes() == 0);
    }
  });
}

TEST_CASE("casts take a byte an element in each layout, and of blocks their scales") {
  for (const at::Device device : test_devices()) {
    const at::TensorOptions options = at::TensorOptions(device).dtype(at::kBFloat16);
    CHECK(bytes_of(Model(options, Fp8::hybrid, nullptr)) == 2 * (160 * 64 + 32 * 160));
    // [160, 64] as [160, 128] and [64, 256], with 2 x 4 and 1 x 4 scales; [32, 160] as [32, 256] and [160, 128],
    // likewise
    CHECK(bytes_of(Model(options, Fp8::blockwise_hybrid, nullptr)) ==
          2 * (160 * 128 + 4 * 8) + 64 * 256 + 4 * 4 + 32 * 256 + 4 * 4);
  }
}

// Weights that are overwritten while casts stay are not seen: what stays is stale then, and clear() alone mends it.
TEST_CASE("casts that stay are read in place of the weights, forward and backward, until they are cleared") {
  everywhere([](const at::TensorOptions& options, Fp8 format) {
    Fp8Casts casts;
    const Model model(options, format, &casts);
    const at::Tensor x = at::randn({40, 64}).to(options);
    casts.keep(kAll);
    const Tensors before = model.run(x);
    model.fill(NAN);
    CHECK(same(model.run(x), before));
    casts.clear();
    for (const at::Tensor& spoilt : model.run(x)) CHECK(spoilt.isnan().any().item<bool>());
    model.fill(0.25);
    const Tensors want = model.run(x);
    CHECK_FALSE(same(want, before));
    casts.keep(kAll);
    CHECK(same(model.run(x), want));
  });
}

TEST_CASE("where no cast stays, ranges do until they are cleared") {
  for (const at::Device device : test_devices()) {
    at::manual_seed(6);
    Fp8Casts casts;
    const Model model(at::TensorOptions(device).dtype(at::kBFloat16), Fp8::e4m3, &casts);
    const at::Tensor x = at::randn({40, 64}).to(device, at::kBFloat16);
    casts.keep(0);
    model.run(x);
    model.scale(1e-3);
    const Tensors stale = model.run(x);
    casts.clear();
    const Tensors want = model.run(x);
    CHECK_FALSE(same(stale, want));
    casts.keep(0);
    CHECK(same(model.run(x), want));
  }
}

TEST_CASE("a weight that takes another's memory does not take its cast") {
  everywhere([](const at::TensorOptions& options, Fp8 format) {
    Fp8Casts casts;
    casts.keep(kAll);
    const at::Tensor x = at::randn({40, 64}).to(options), flat = (at::randn({160, 64}) * 0.05).to(options);
    LinearOptions linear;
    linear.fp8 = format, linear.fp8_casts = &casts;
    const at::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) {
      const Tensors weights = leaves_of(flat, kRows);
      LinearOptions plain = linear;
      plain.fp8_casts = nullptr;
      CHECK(same(apply_linears(x, weights, Tensors(3), linear), apply_linears(x, weights, Tensors(3), plain)));
      at::Tensor(flat).mul_(-1.5);
    }
  });
}

}  // namespace
}  // namespace hexad::modeling
