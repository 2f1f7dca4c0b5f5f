// The loss on a GPU against the same loss on the host, over random batches and every option.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "plugins/loss/clipped_pg/cuda/batch_kernel.hpp"

using namespace clipped_pg;

namespace {

// Copies of host arrays on the device, freed at the end.
class OnDevice {
 public:
  ~OnDevice() {
    for (void* memory : all_) cudaFree(memory);
  }
  template <typename T>
  T* of(const std::vector<T>& values) {
    T* memory = static_cast<T*>(bytes(std::max<size_t>(values.size(), 1) * sizeof(T)));
    REQUIRE(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
    return memory;
  }
  void* bytes(size_t count) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, count) == cudaSuccess);
    REQUIRE(cudaMemset(memory, 0xff, count) == cudaSuccess);  // NaN, as float and as double
    return all_.emplace_back(memory);
  }
  template <typename T>
  static std::vector<T> read(const T* memory, size_t count) {
    std::vector<T> values(count);
    REQUIRE(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }

 private:
  std::vector<void*> all_;
};

struct Case {
  std::vector<std::vector<float>> inputs{kInputCount};
  std::vector<int64_t> cu_seqlens{0};
  Options options;
};

Case random_case(const Options& options, bool equal_lengths, bool unfiltered, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Case result;
  result.options = options;
  for (const int64_t length : std::vector<int64_t>{5, 1, 700, 64, 2, 1300})
    result.cu_seqlens.push_back(result.cu_seqlens.back() + (equal_lengths ? 300 : length));
  const auto tokens = static_cast<size_t>(result.cu_seqlens.back());
  const size_t sequences = result.cu_seqlens.size() - 1;
  const auto token = [&](float mean, float spread) {
    std::vector<float> values(tokens);
    for (float& value : values) value = mean + spread * normal(random);
    return values;
  };
  for (const size_t i : {kLogprobs, kPrevious, kGeneration, kReference}) result.inputs[i] = token(-2, 0.7f);
  if (unfiltered) result.inputs[kUnfiltered] = token(-2, 0.7f);
  result.inputs[kLogprobs][7] = -INFINITY;  // the sampling filter took it
  result.inputs[kAdvantages] = token(0, 1);
  result.inputs[kTokenMask] = token(0, 1);
  for (float& mask : result.inputs[kTokenMask]) mask = mask > 0 ? 1.0f : 0.0f;
  for (size_t i = 0; i < sequences; ++i) {
    result.inputs[kSampleMask].push_back(i == 3 ? 0.0f : 1.0f);
    result.inputs[kRewards].push_back(normal(random));
    result.inputs[kPositiveTokens].push_back(411);
  }
  if (seed % 2 == 0) result.inputs[kHeld] = token(-2, 0.7f);
  if (seed % 2 == 0 && unfiltered) result.inputs[kHeldUnfiltered] = token(-2, 0.7f);
  return result;
}

struct Result {
  std::vector<double> loss_and_metrics;
  std::vector<float> grad, grad_unfiltered;
};

Batch shape_of(const Case& given) {
  Batch batch;
  batch.cu_seqlens = given.cu_seqlens.data();
  batch.sequences = static_cast<int64_t>(given.cu_seqlens.size()) - 1;
  batch.per_token = 1 / denominator(901), batch.per_sequence = 1 / denominator(7);
  return batch;
}

Result on_host(const Case& given) {
  Batch batch = shape_of(given);
  const size_t tokens = given.inputs[kLogprobs].size();
  Result result{std::vector<double>(1 + 2 * kMetricCount), std::vector<float>(tokens), std::vector<float>(tokens)};
  for (size_t i = 0; i < kInputCount; ++i) batch.inputs[i] = given.inputs[i].empty() ? nullptr : given.inputs[i].data();
  batch.grad = result.grad.data();
  batch.grad_unfiltered = batch.inputs[kUnfiltered] ? result.grad_unfiltered.data() : nullptr;
  compute_on_host(given.options, batch, result.loss_and_metrics.data(), result.loss_and_metrics.data() + 1);
  return result;
}

Result on_device(const Case& given) {
  OnDevice device;
  Batch batch = shape_of(given);
  const size_t tokens = given.inputs[kLogprobs].size();
  for (size_t i = 0; i < kInputCount; ++i)
    batch.inputs[i] = given.inputs[i].empty() ? nullptr : device.of(given.inputs[i]);
  float* grad = device.of(std::vector<float>(tokens));
  float* unfiltered = device.of(std::vector<float>(tokens));
  batch.grad = grad, batch.grad_unfiltered = batch.inputs[kUnfiltered] ? unfiltered : nullptr;
  auto* out = static_cast<double*>(device.bytes((1 + 2 * kMetricCount) * sizeof(double)));
  void* scratch = device.bytes(scratch_bytes(batch.sequences));
  REQUIRE(compute_on_device(given.options, batch, scratch, out, out + 1, nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return {OnDevice::read(out, 1 + 2 * kMetricCount), OnDevice::read(grad, tokens), OnDevice::read(unfiltered, tokens)};
}

template <typename T>
void check_equal(const std::vector<T>& got, const std::vector<T>& want, double tolerance) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    if (std::isfinite(want[i]))
      CHECK(std::abs(got[i] - want[i]) <= tolerance * (std::abs(want[i]) + 1e-6));
    else
      CHECK(((got[i] == want[i]) || (std::isnan(got[i]) && std::isnan(want[i]))));
  }
}

std::vector<Options> all_options() {
  std::vector<Options> all(13);
  all[1].kl_input_clamp = 1, all[1].kl_output_clamp = 0.5, all[1].kl_type = KlType::k1;
  all[2].dual_clip = 3, all[2].kl_type = KlType::k2, all[2].on_policy_kl = true;
  all[3].token_level = false, all[3].sequence_ratios = all[3].sequence_weights = true;
  all[4].reinforce = true, all[4].dual_clip = 2;
  all[5].cispo = true;
  all[6].importance_correction = true;
  for (size_t i = 7; i < 10; ++i) {
    all[i] = all[6];
    all[i].truncation = std::array{Truncation::tis, Truncation::icepop, Truncation::seq_mask_tis}[i - 7];
    all[i].truncation_min = 0.8, all[i].truncation_max = 1.3;
  }
  all[10].positive_nll_weight = 0.3;
  all[11] = all[3], all[11].importance_correction = true, all[11].positive_nll_weight = 0.1;
  all[12] = all[11], all[12].force_on_policy = true, all[12].sequence_ratios = false;
  return all;
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("clipped_pg on the GPU equals clipped_pg on the host, with every option") {
  uint32_t seed = 1;
  for (const Options& options : all_options()) {
    for (const bool equal_lengths : {false, true}) {
      CAPTURE(seed);
      const Case given = random_case(options, equal_lengths, seed % 3 == 0, seed);
      ++seed;
      const Result got = on_device(given), want = on_host(given);
      check_equal(got.loss_and_metrics, want.loss_and_metrics, 1e-9);
      check_equal(got.grad, want.grad, 1e-5);
      check_equal(got.grad_unfiltered, want.grad_unfiltered, 1e-5);
      const Result again = on_device(given);  // bit for bit
      CHECK(again.loss_and_metrics[0] == got.loss_and_metrics[0]);
      CHECK(again.grad == got.grad);
    }
  }
}

TEST_CASE("clipped_pg on the GPU takes a batch without sequences") {
  Case nothing;
  const Result got = on_device(nothing), want = on_host(nothing);
  CHECK(got.loss_and_metrics[0] == 0);
  check_equal(got.loss_and_metrics, want.loss_and_metrics, 0);
}

TEST_SUITE_END();
