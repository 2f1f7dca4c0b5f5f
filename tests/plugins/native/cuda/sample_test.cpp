// The sampling kernel against the CPU's sampler, with the same chance.
#include "plugins/native/cuda/sample/sample.hpp"

#include "plugins/native/sample/philox.hpp"
#include "plugins/native/sample/sampler.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using hexad::native::Draw;
using hexad::native::SamplingParams;

namespace {

at::Tensor upload(const std::vector<hexad::native::cuda::DrawTask>& tasks) {
  const auto bytes = int64_t(tasks.size() * sizeof(tasks[0]));
  return at::from_blob(const_cast<hexad::native::cuda::DrawTask*>(tasks.data()), {bytes}, at::kByte).to(kGpu);
}

hexad::native::cuda::DrawTask task_of(const SamplingParams& p, double u, int32_t row) {
  return {u, p.temperature, p.top_p, p.min_p, int32_t(p.top_k), row};
}

std::vector<Draw> sampled(const at::Tensor& logits, const std::vector<hexad::native::cuda::DrawTask>& tasks) {
  const auto count = int64_t(tasks.size());
  const at::Tensor list = upload(tasks), on_device = logits.to(kGpu);
  const at::Tensor tokens = at::full({count}, -7, at::TensorOptions(at::kInt).device(kGpu));
  const at::Tensor logprobs = poisoned({count}, at::kFloat);
  hexad::native::cuda::sample(on_device.const_data_ptr<float>(), int(logits.size(1)),
                              static_cast<const hexad::native::cuda::DrawTask*>(list.const_data_ptr()),
                              tokens.data_ptr<int32_t>(), logprobs.data_ptr<float>(), int(count), nullptr);
  synchronize();
  const at::Tensor t = tokens.cpu(), l = logprobs.cpu();
  std::vector<Draw> draws;
  for (int64_t i = 0; i < count; ++i) draws.push_back({t.const_data_ptr<int32_t>()[i], l.const_data_ptr<float>()[i]});
  return draws;
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: the GPU draws what the CPU draws, with and without filters") {
  std::mt19937_64 rng(21);
  int64_t total = 0, different = 0;
  for (const int64_t vocab : {1, 31, 97, 1024, 1025, 32003, 151936}) {
    CAPTURE(vocab);
    const int rows = vocab > 100000 ? 6 : 12, draws = vocab > 100000 ? 20 : 40;
    at::Tensor logits = at::randn({rows, vocab}, at::kFloat) *
                        at::tensor({0.1f, 1.f, 3.f, 8.f}).repeat({rows / 2}).slice(0, 0, rows).unsqueeze(1);
    logits = logits.clone();
    logits[rows - 1].copy_((logits[rows - 1] * 2).round() / 2);  // many equal ones
    logits[rows - 2].slice(0, vocab / 2).fill_(-INFINITY);       // masked
    if (vocab == 1) logits[rows - 2].fill_(1);
    std::vector<hexad::native::cuda::DrawTask> tasks;
    std::vector<SamplingParams> params;
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < draws; ++i) {
        const double v = double(rng() % 1000) / 1000;
        SamplingParams p;
        if (i % 8 == 1) p.temperature = 0;
        if (i % 8 >= 2) p.temperature = 0.2 + 1.5 * v;
        if (i % 8 == 3 || i % 8 == 7) p.top_k = 1 + int64_t(rng() % 100);
        if (i % 8 == 4 || i % 8 == 7) p.top_p = 0.02 + 0.97 * v;
        if (i % 8 == 5 || i % 8 == 7) p.min_p = v * v * 0.5;
        params.push_back(p);
        tasks.push_back(task_of(p, hexad::native::uniform(rng(), 5), row));
      }
    }
    const std::vector<Draw> got = sampled(logits, tasks);
    for (size_t i = 0; i < tasks.size(); ++i) {
      const float* row = logits.const_data_ptr<float>() + tasks[i].row * vocab;
      const Draw want = hexad::native::draw(row, vocab, params[i], tasks[i].u);
      ++total;
      REQUIRE((got[i].token >= 0 && got[i].token < vocab));
      CHECK(std::isfinite(row[got[i].token]));
      // Where u falls between two tokens within rounding, the neighbour may be drawn.
      different += got[i].token != want.token;
      if (params[i].temperature == 0) CHECK(got[i].token == want.token);
      if (got[i].token == want.token) CHECK(std::abs(got[i].logprob - want.logprob) < 1e-4);
    }
  }
  MESSAGE(different, " of ", total, " draws fall on a neighbour");
  CHECK(different <= total / 200);
}

TEST_CASE("native: GPU draws follow the distribution (chi-square)") {
  const int64_t vocab = 1500, draws = 60000;
  const at::Tensor logits = at::randn({1, vocab}, at::kFloat) * 2;
  std::vector<hexad::native::cuda::DrawTask> tasks;
  for (int64_t i = 0; i < draws; ++i) tasks.push_back(task_of({}, hexad::native::uniform(9, uint64_t(i)), 0));
  std::vector<double> count(vocab, 0.0);
  for (const Draw& draw : sampled(logits, tasks)) count[draw.token] += 1;
  const at::Tensor want = wide(logits[0]).softmax(0) * double(draws);
  double chi = 0, cells = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    const double expected = want.const_data_ptr<double>()[i];
    if (expected < 5) continue;
    chi += (count[i] - expected) * (count[i] - expected) / expected, cells += 1;
  }
  CHECK(cells > 300);
  CHECK(chi < cells + 5 * std::sqrt(2 * cells));
}

TEST_CASE("native: rows without a finite largest logit draw nothing on the GPU; the ends of chance stay inside") {
  at::Tensor logits = at::randn({5, 2000}, at::kFloat);
  logits[0][1999] = NAN, logits[1][3] = INFINITY;
  logits[2].fill_(-INFINITY);
  logits[3].fill_(-INFINITY), logits[3][1777] = -3, logits[3][12] = -3;
  std::vector<hexad::native::cuda::DrawTask> tasks;
  for (const double temperature : {1.0, 0.0})
    for (int row = 0; row < 3; ++row) tasks.push_back(task_of({.temperature = temperature}, 0.5, row));
  for (const Draw& draw : sampled(logits, tasks)) CHECK(draw.token == -1);
  const double last = std::nextafter(1.0, 0.0);
  const std::vector<Draw> draws = sampled(logits, {task_of({}, 0, 3), task_of({}, 0.49, 3), task_of({}, 0.51, 3),
                                                   task_of({}, last, 3), task_of({.top_p = 0.3}, last, 3)});
  CHECK(draws[0].token == 12);
  CHECK(draws[1].token == 12);
  CHECK(draws[2].token == 1777);
  CHECK(draws[3].token == 1777);
  CHECK(draws[0].logprob == doctest::Approx(std::log(0.5)));
  CHECK(draws[4].token == 1777);  // among equals the higher stays
  CHECK(draws[4].logprob == doctest::Approx(0));
  CHECK(sampled(logits, {task_of({}, 0.5, -1)})[0].token == -7);  // nothing to draw: untouched
}

TEST_SUITE_END();
