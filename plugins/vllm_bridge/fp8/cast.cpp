#include "plugins/vllm_bridge/fp8/cast.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace hexad::vllm::fp8 {
namespace {

constexpr float kLargest = 448;    // of e4m3
constexpr uint8_t kNaN = 0x7f;     // of e4m3
constexpr uint8_t kNoScale = 255;  // NaN of e8m0

float half_to_float(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
  const auto sign = static_cast<float>(half >> 15 ? -1 : 1);
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                               : std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25));
}

// Some elements as fp32.
void widen(const Matrix& x, int64_t begin, int64_t count, float* to) {
  const auto narrow = [&](int64_t i) {
    uint16_t bits = 0;
    std::memcpy(&bits, x.data + 2 * (begin + i), sizeof bits);
    return bits;
  };
  if (x.type.bits == 32)
    std::memcpy(to, x.data + 4 * begin, static_cast<size_t>(count) * sizeof(float));
  else if (x.type.code == kDLBfloat)
    for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(narrow(i)) << 16);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = half_to_float(narrow(i));
}

// Of |x| at most 448. A number of exponent e has steps of 2^(e - 3), those below 2^-6 the same as at it: steps counted
// from zero of the smallest exponent on are the code.
uint8_t e4m3(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const int exponent = std::max(static_cast<int>(bits >> 23 & 255) - 127, -6);
  const float steps = std::abs(x) * std::bit_cast<float>(static_cast<uint32_t>(127 + 3 - exponent) << 23);
  constexpr float kWhole = 0x1p23f;  // beside it, fractions are rounded away, to even
  const auto count = static_cast<int>((steps + kWhole) - kWhole);
  return static_cast<uint8_t>((bits >> 31) << 7 | static_cast<uint32_t>((exponent + 6) * 8 + count));
}

// The least e of 2^e >= x > 0.
int exponent_above(float x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5f ? exponent - 1 : exponent;
}

// 1 for what is too small to be scaled.
struct Scale {
  float factor = 1, inverse = 1;
  uint8_t exponent = 0;  // biased; of powers of two alone
};
Scale power_scale(float largest) {
  if (largest == 0) return {};
  const int exponent = std::clamp(exponent_above(largest / kLargest), -127, 127);
  if (exponent == -127) return {};
  return {std::ldexp(1.0f, -exponent), std::ldexp(1.0f, exponent), static_cast<uint8_t>(exponent + 127)};
}
Scale plain_scale(float largest) {
  if (largest == 0) return {};
  // Rounded twice, as NeMo-RL's is: in PyTorch a number over a tensor is the tensor's reciprocal times the number.
  const float factor = std::min(1 / largest * kLargest, std::numeric_limits<float>::max());
  return {factor, 1 / factor, 0};
}

float largest_of(const float* x, int64_t count, float largest) {
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  return largest;
}

bool finite(const float* x, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += x[i] * 0;  // NaN from what is not
  return sum == 0;
}

void encode(const float* x, int64_t count, float factor, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = e4m3(std::clamp(x[i] * factor, -kLargest, kLargest));
}

// each(part, buffer) for all parts, on as many threads as that many elements are worth; a buffer a thread.
template <typename Each>
void in_parallel(int64_t parts, int64_t elements, int64_t buffer, const Each& each) {
  constexpr int64_t kMostThreads = 16, kWorth = int64_t{1} << 19;
  const int64_t hardware = std::max<int64_t>(std::thread::hardware_concurrency(), 1);
  const int64_t count = std::clamp<int64_t>(elements / kWorth, 1, std::min({parts, hardware, kMostThreads}));
  std::vector<float> buffers(static_cast<size_t>(count * buffer));
  const auto work = [&](int64_t thread) {
    for (int64_t part = thread; part < parts; part += count) each(part, buffers.data() + thread * buffer);
  };
  std::vector<std::jthread> threads;
  for (int64_t thread = 1; thread < count; ++thread) threads.emplace_back(work, thread);
  work(0);
}

// A block of a band of rows that `x` holds in fp32.
void cast_block(const float* x, int64_t rows, int64_t columns, int64_t stride, bool powers, uint8_t* values,
                float& inverse) {
  float largest = 0;
  bool good = true;
  for (int64_t r = 0; r < rows; ++r) {
    largest = largest_of(x + r * stride, columns, largest);
    good = good && finite(x + r * stride, columns);
  }
  const Scale scale = powers ? power_scale(largest) : plain_scale(largest);
  inverse = good ? scale.inverse : NAN;
  for (int64_t r = 0; r < rows; ++r) {
    if (good)
      encode(x + r * stride, columns, scale.factor, values + r * stride);
    else
      std::fill_n(values + r * stride, columns, kNaN);
  }
}

}  // namespace

void cast_blocks(const Matrix& x, bool powers, std::span<uint8_t> values, std::span<float> scales) {
  const int64_t across = blocks_of(x.columns);
  in_parallel(blocks_of(x.rows), x.rows * x.columns, kBlock * x.columns, [&](int64_t band, float* wide) {
    const int64_t first = band * kBlock, rows = std::min(kBlock, x.rows - first);
    widen(x, first * x.columns, rows * x.columns, wide);
    for (int64_t b = 0; b < across; ++b) {
      const int64_t column = b * kBlock;
      cast_block(wide + column, rows, std::min(kBlock, x.columns - column), x.columns, powers,
                 values.data() + first * x.columns + column, scales[static_cast<size_t>(band * across + b)]);
    }
  });
}

void cast_strips(const Matrix& x, std::span<uint8_t> values, std::span<uint8_t> exponents) {
  in_parallel(x.rows, x.rows * x.columns, x.columns, [&](int64_t row, float* wide) {
    widen(x, row * x.columns, x.columns, wide);
    for (int64_t c = 0; c < x.columns; c += kStrip) {
      const bool good = finite(wide + c, kStrip);
      const Scale scale = power_scale(largest_of(wide + c, kStrip, 0));
      uint8_t* const to = values.data() + row * x.columns + c;
      exponents[static_cast<size_t>((row * x.columns + c) / kStrip)] =
          good ? std::max<uint8_t>(scale.exponent, 1) : kNoScale;
      good ? encode(wide + c, kStrip, scale.exponent == 0 ? 0 : scale.factor, to) : void(std::fill_n(to, kStrip, kNaN));
    }
  });
}

}  // namespace hexad::vllm::fp8
