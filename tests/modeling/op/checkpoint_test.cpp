#include "modeling/op/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/modeling/support/allocated_bytes.hpp"

namespace hexad::modeling {
namespace {

at::Tensor leaf(std::initializer_list<int64_t> shape) { return at::randn(shape).set_requires_grad(true); }

// A part with two outputs, and products on the way that plain autograd keeps.
Tensors part(const at::Tensor& x, const at::Tensor& y, const at::Tensor& w) {
  const at::Tensor inner = at::tanh(at::mm(x, w));
  return {at::mm(inner, w.t()) * y, at::sigmoid(inner).t()};
}

at::Tensor use(const Tensors& outputs, const at::Tensor& v) { return at::mm(at::mm(outputs[0], v).tanh(), outputs[1]); }

bool same(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() != b[i].defined() || (a[i].defined() && !at::equal(a[i], b[i]))) return false;
  return true;
}

// Sums in another order: a gradient of zeros is added, or a view has become a tensor of its own.
bool close(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < b.size(); ++i)
    if (!at::allclose(a.at(i), b[i], 1e-5, 1e-6)) return false;
  return a.size() == b.size();
}

Tensors grads_of(const at::Tensor& out, const at::Tensor& grad, const Tensors& inputs) {
  return torch::autograd::grad({out}, inputs, {grad}, false, false, /*allow_unused=*/true);
}

struct Case {
  at::Tensor a = leaf({6, 5}), w = leaf({5, 7}), v = leaf({5, 7}), y = leaf({6, 5}), grad = at::randn({6, 6});
  // No leaf: gradients pass through to `a`.
  at::Tensor x() const { return a * 1.5; }
  Tensors leaves() const { return {a, y, w, v}; }
  Run run(int* runs = nullptr) const {
    return [w = w, runs](const Tensors& in) {
      if (runs) ++*runs;
      return part(in[0], in[1], w);
    };
  }
  Tensors plain() const { return grads_of(use(part(x(), y, w), v), grad, leaves()); }
};

}  // namespace

TEST_CASE("a checkpointed part has the gradients of the part, bit for bit, and runs twice") {
  const Case c;
  int runs = 0;
  const Tensors outputs = checkpoint(c.run(&runs), {c.x(), c.y}, {c.w, at::Tensor(), at::zeros({2})});
  CHECK(runs == 1);
  CHECK(same(outputs, part(c.x(), c.y, c.w)));
  CHECK(same(grads_of(use(outputs, c.v), c.grad, c.leaves()), c.plain()));
  CHECK(runs == 2);
}

TEST_CASE("an input that wants no gradient gets none, and an output without one counts as zero") {
  const Case c;
  const at::Tensor x = c.x().detach();
  const auto loss = [&](const Tensors& outputs) { return at::mm(outputs[0], c.v); };
  const Tensors inputs = {c.y, c.w};
  const at::Tensor grad = at::randn({6, 7});
  CHECK(close(grads_of(loss(checkpoint(c.run(), {x, c.y}, {c.w})), grad, inputs),
              grads_of(loss(part(x, c.y, c.w)), grad, inputs)));
}

TEST_CASE("without gradients a part runs once and nothing is kept") {
  const Case c;
  int runs = 0;
  const at::NoGradGuard no_grad;
  DiscardedOutputs discarded(c.run(&runs), {c.x(), c.y}, {c.w});
  const at::Tensor out = use(discarded.outputs(), c.v);
  discarded.discard_until(out);
  CHECK(discarded.outputs()[0].storage().nbytes() > 0);
  checkpoint(c.run(&runs), {c.x(), c.y}, {c.w});
  CHECK(runs == 2);
}

TEST_CASE("discarded outputs hold no memory until the gradient of their consumer comes") {
  const Case c;
  int runs = 0;
  DiscardedOutputs discarded(c.run(&runs), {c.x(), c.y}, {c.w});
  const Tensors outputs = discarded.outputs();
  const at::Tensor out = use(outputs, c.v);
  discarded.discard_until(out);
  for (const at::Tensor& output : outputs) CHECK(output.storage().nbytes() == 0);
  CHECK(runs == 1);
  CHECK(close(grads_of(out, c.grad, c.leaves()), c.plain()));
  CHECK(runs == 2);
}

TEST_CASE("outputs that share memory are discarded apart") {
  const at::Tensor x = leaf({4, 6}), grad = at::randn({4, 3});
  const Run halves = [](const Tensors& in) -> Tensors { return at::tanh(in[0]).split(3, 1); };
  DiscardedOutputs discarded(halves, {x}, {});
  const Tensors outputs = discarded.outputs();
  const at::Tensor out = outputs[0] * outputs[1];
  discarded.discard_until(out);
  for (const at::Tensor& output : outputs) CHECK(output.storage().nbytes() == 0);
  const Tensors plain = halves({x});
  CHECK(same(grads_of(out, grad, {x}), grads_of(plain[0] * plain[1], grad, {x})));
}

TEST_CASE("parts nest: what is discarded feeds what is checkpointed, and the other way round") {
  const Case c;
  const auto inner = [&c](const Tensors& in) -> Tensors {
    DiscardedOutputs activation([](const Tensors& x) -> Tensors { return {at::tanh(x[0])}; }, {in[0]}, {});
    const at::Tensor out = at::mm(activation.outputs()[0], c.w);
    activation.discard_until(out);
    return {out};
  };
  const at::Tensor want = at::mm(at::tanh(at::sigmoid(c.x())), c.w).sin();
  DiscardedOutputs before([](const Tensors& x) -> Tensors { return {at::sigmoid(x[0])}; }, {c.x()}, {});
  const at::Tensor middle = checkpoint(inner, {before.outputs()[0]}, {c.w})[0];
  before.discard_until(middle);
  const at::Tensor got = middle.sin(), grad = at::randn({6, 7});
  CHECK(at::equal(got, want));
  CHECK(same(grads_of(got, grad, {c.a, c.w}), grads_of(want, grad, {c.a, c.w})));
}

TEST_CASE("an exception of the second run leaves the backward pass") {
  const Case c;
  int runs = 0;
  const Run run = [&](const Tensors& in) -> Tensors {
    TORCH_CHECK(++runs == 1, "the second run fails");
    return {in[0].tanh()};
  };
  const at::Tensor out = checkpoint(run, {c.x()}, {})[0];
  CHECK_THROWS_WITH_AS(grads_of(out, at::ones({6, 5}), {c.a}), doctest::Contains("the second run fails"), c10::Error);
}

// A chain of `steps` products of [n, n] matrices with their tanh between.
TEST_CASE("memory after the forward pass: the whole graph, the outputs of parts, or nothing but the first input") {
  const int64_t n = 64, matrix = n * n * 4;
  const at::Tensor w = leaf({n, n}), x = leaf({n, n});
  const Run step = [w](const Tensors& in) -> Tensors { return {at::mm(at::tanh(in[0] * in[0]), w)}; };
  const auto held = [&](const std::function<at::Tensor()>& forward) {
    const AllocatedBytes bytes;
    const at::Tensor out = forward();
    return bytes.now();
  };
  constexpr int kSteps = 4;
  const auto each = [&](const std::function<Tensors(const at::Tensor&)>& part) {
    return [&, part] {
      at::Tensor h = x;
      for (int i = 0; i < kSteps; ++i) h = part(h)[0];
      return h;
    };
  };
  const int64_t plain = held(each([&](const at::Tensor& h) { return step({h}); }));
  const int64_t parts = held(each([&](const at::Tensor& h) { return checkpoint(step, {h}, {w}); }));
  const Run all = [&](const Tensors& in) -> Tensors {
    return {each([&](const at::Tensor& h) { return step({h}); })()};
  };
  const int64_t whole = held([&] { return checkpoint(all, {x}, {w})[0]; });
  CHECK(plain == 2 * kSteps * matrix);  // of every step its result and that of tanh
  CHECK(parts == kSteps * matrix);      // the inputs of the parts, and the end
  CHECK(whole == matrix);               // the end alone
}

}  // namespace hexad::modeling
