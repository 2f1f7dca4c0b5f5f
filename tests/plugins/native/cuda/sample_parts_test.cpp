// Draws from parts of rows on the GPU, one part after the other, against the kernel that sees whole rows and against
// the CPU's steps.
#include "plugins/native/cuda/sample/sample_parts.hpp"

#include "modeling/parallel/placement.hpp"
#include "plugins/native/sample/philox.hpp"
#include "tests/plugins/native/cuda/support.hpp"

using namespace native_cuda_test;
using hexad::native::Draw;
using hexad::native::PartSum;
using hexad::native::SamplingParams;
using hexad::native::cuda::DrawTask;

namespace {

// A draw's numbers before anything is drawn.
constexpr int32_t kUntouched = -7;

struct Drawn {
  at::Tensor tokens, logprobs;
  explicit Drawn(int64_t count)
      : tokens(at::full({count}, kUntouched, at::TensorOptions(at::kInt).device(kGpu))),
        logprobs(poisoned({count}, at::kFloat)) {}
  std::vector<Draw> on_host() const {
    synchronize();
    const at::Tensor t = tokens.cpu(), l = logprobs.cpu();
    std::vector<Draw> draws;
    for (int64_t i = 0; i < t.numel(); ++i)
      draws.push_back({t.const_data_ptr<int32_t>()[i], l.const_data_ptr<float>()[i]});
    return draws;
  }
};

at::Tensor upload(const std::vector<DrawTask>& tasks) {
  const auto bytes = int64_t(tasks.size() * sizeof(tasks[0]));
  return at::from_blob(const_cast<DrawTask*>(tasks.data()), {bytes}, at::kByte).to(kGpu);
}

std::vector<Draw> of_whole_rows(const at::Tensor& logits, const std::vector<DrawTask>& tasks) {
  const at::Tensor list = upload(tasks), rows = logits.to(kGpu);
  const Drawn drawn(int64_t(tasks.size()));
  hexad::native::cuda::sample(rows.const_data_ptr<float>(), int(logits.size(1)),
                              static_cast<const DrawTask*>(list.const_data_ptr()), drawn.tokens.data_ptr<int32_t>(),
                              drawn.logprobs.data_ptr<float>(), int(tasks.size()), nullptr);
  return drawn.on_host();
}

std::vector<Draw> of_parts(const at::Tensor& logits, const std::vector<DrawTask>& tasks, int64_t ranks) {
  const auto count = int64_t(tasks.size());
  const at::Tensor list = upload(tasks);
  const auto* const on_device = static_cast<const DrawTask*>(list.const_data_ptr());
  const at::Tensor sums = poisoned({ranks, count, 2}, at::kDouble);
  at::Tensor all = at::zeros({count}, at::TensorOptions(at::kLong).device(kGpu));
  std::vector<at::Tensor> parts;
  std::vector<hexad::native::cuda::PartLogits> views;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const hexad::modeling::Range columns = hexad::modeling::chunk_range(logits.size(1), ranks, rank);
    parts.push_back(logits.narrow(1, columns.begin, columns.size()).contiguous().to(kGpu));
    views.push_back({parts.back().const_data_ptr<float>(), int(columns.size()), int(columns.begin)});
    sum_parts(views.back(), on_device, static_cast<PartSum*>(sums[rank].data_ptr()), int(count), nullptr);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const at::Tensor drawn = at::full({count}, int64_t{1} << 60, all.options());  // all of it is written
    draw_in_part(views[size_t(rank)], on_device, static_cast<const PartSum*>(sums.const_data_ptr()), int(rank),
                 int(ranks), drawn.data_ptr<int64_t>(), int(count), nullptr);
    all = at::maximum(all, drawn);
  }
  const Drawn drawn(count);
  take_draws(all.const_data_ptr<int64_t>(), on_device, drawn.tokens.data_ptr<int32_t>(),
             drawn.logprobs.data_ptr<float>(), int(count), nullptr);
  return drawn.on_host();
}

DrawTask task_of(double temperature, double u, int32_t row) { return {u, temperature, 1, 0, 0, row}; }

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("native: GPU draws from parts of rows are those from whole rows") {
  int64_t total = 0, different = 0;
  for (const int64_t vocab : {5, 997, 1024, 4096 + 3, 151936}) {
    for (const double spread : {0.5, 3.0, 40.0}) {
      const at::Tensor logits = at::randn({7, vocab}, at::kFloat) * spread;
      std::vector<DrawTask> tasks;
      for (int i = 0; i < 140; ++i)
        tasks.push_back(task_of(i % 4 == 0 ? 0.0 : 0.2 + 0.4 * (i % 4), hexad::native::uniform(3, uint64_t(i)), i % 7));
      const std::vector<Draw> want = of_whole_rows(logits, tasks);
      for (const int64_t ranks : {2, 3, 4, 8}) {
        CAPTURE(vocab);
        CAPTURE(ranks);
        const std::vector<Draw> got = of_parts(logits, tasks, ranks);
        for (size_t i = 0; i < tasks.size(); ++i) {
          const float* row = logits.const_data_ptr<float>() + tasks[i].row * vocab;
          const Draw on_cpu = hexad::native::draw(row, vocab, {.temperature = tasks[i].temperature}, tasks[i].u);
          ++total;
          // Where u falls between two tokens within rounding, the neighbour may be drawn.
          different += got[i].token != want[i].token;
          if (tasks[i].temperature == 0) CHECK(got[i].token == want[i].token);
          if (got[i].token == want[i].token) CHECK(std::abs(got[i].logprob - want[i].logprob) < 1e-4);
          if (got[i].token == on_cpu.token) CHECK(std::abs(got[i].logprob - on_cpu.logprob) < 1e-4);
        }
      }
    }
  }
  MESSAGE(different, " of ", total, " draws fall on a neighbour");
  CHECK(different <= total / 500);
}

TEST_CASE("native: parts of rows on the GPU: equal logits, masked parts, the ends of chance, rows that are none") {
  at::Tensor logits = at::randn({5, 5000}, at::kFloat);
  logits[0][4999] = NAN, logits[1][3] = INFINITY;
  logits[2].fill_(-INFINITY);
  logits[3].fill_(-INFINITY), logits[3][1777] = -3, logits[3][4200] = -3;
  const double last = std::nextafter(1.0, 0.0);
  for (const int64_t ranks : {2, 4}) {
    std::vector<DrawTask> unsound;
    for (const double temperature : {1.0, 0.0})
      for (int row = 0; row < 3; ++row) unsound.push_back(task_of(temperature, 0.5, row));
    for (const Draw& draw : of_parts(logits, unsound, ranks)) CHECK(draw.token == -1);
    const std::vector<Draw> draws = of_parts(logits,
                                             {task_of(1, 0, 3), task_of(1, 0.49, 3), task_of(1, 0.51, 3),
                                              task_of(1, last, 3), task_of(0, last, 3), task_of(1, 0.5, -1)},
                                             ranks);
    const std::vector<int32_t> want = {1777, 1777, 4200, 4200, 1777, kUntouched};
    for (size_t i = 0; i < want.size(); ++i) CHECK(draws[i].token == want[i]);
    for (size_t i = 0; i < 5; ++i) CHECK(draws[i].logprob == doctest::Approx(std::log(0.5)));
  }
}

TEST_SUITE_END();
