// Products in 16 bits whose sums cuBLAS likes to split: rounded once, at the end.
#include "tests/modeling/support/compare.hpp"
#include "tests/modeling/support/devices.hpp"

namespace hexad::modeling {
namespace {

TEST_CASE("a product in 16 bits is rounded once, however its sum is split") {
  for (const at::Device device : test_devices()) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
      CAPTURE(device.str());
      CAPTURE(toString(dtype));
      at::manual_seed(6);
      const int64_t rows = device.is_cuda() ? 1024 : 4, out = device.is_cuda() ? 1536 : 8;
      const at::Tensor x = at::randn({rows, 8960}).to(dtype).to(device),
                       w = at::randn({out, 8960}).to(dtype).to(device);
      const at::Tensor want = at::mm(x.to(at::kDouble), w.to(at::kDouble).t());
      const at::Tensor got = at::mm(x, w.t()).to(at::kDouble);
      // One rounding to nearest errs by at most u = 2^-8 (bf16) or 2^-11 (fp16) of the value, by 0.39 u in the mean
      // square.
      const double u = dtype == at::kBFloat16 ? 0x1p-8 : 0x1p-11;
      CHECK((got - want).norm().item<double>() < 0.45 * u * want.norm().item<double>());
    }
  }
}

}  // namespace
}  // namespace hexad::modeling
