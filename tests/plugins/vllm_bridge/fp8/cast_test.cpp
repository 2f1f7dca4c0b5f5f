// Casts of weights to FP8, against NeMo-RL's own (data/nemo_rl_fp8.json) and against a search over all codes.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lib/base/sha256.hpp"
#include "plugins/vllm_bridge/fp8/cast.hpp"

using namespace hexad::vllm::fp8;

namespace {

using Json = nlohmann::json;

Json golden() {
  std::ifstream file(std::string(std::getenv("HEXAD_SOURCE_DIR")) +
                     "/tests/plugins/vllm_bridge/fp8/data/nemo_rl_fp8.json");
  return Json::parse(file);
}

float decoded(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(mantissa + 8), exponent - 10);
  return code & 128 ? -value : value;
}

uint16_t bf16(double x) {  // to nearest even
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Floats {
  std::vector<float> x;
  int64_t rows = 0, columns = 0;
  Matrix matrix() const { return {reinterpret_cast<const std::byte*>(x.data()), {kDLFloat, 32, 1}, rows, columns}; }
};

Floats drawn(int64_t rows, int64_t columns, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Floats result{{}, rows, columns};
  for (int64_t i = 0; i < rows * columns; ++i)
    result.x.push_back(normal(random) * std::ldexp(1.0f, static_cast<int>(i / 700 % 9) - 6));
  return result;
}

// The nearest of all codes, the even one of two.
uint8_t nearest(float x) {
  int best = 0;
  for (int code = 0; code < 127; ++code) {
    const float error = std::abs(decoded(static_cast<uint8_t>(code)) - std::abs(x));
    const float least = std::abs(decoded(static_cast<uint8_t>(best)) - std::abs(x));
    if (error < least || (error == least && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 128 : 0));
}

}  // namespace

TEST_CASE("every element of a block is the nearest FP8 number, whatever the shape") {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {130, 300}, {128, 128}, {7, 257}}) {
    for (const bool powers : {false, true}) {
      CAPTURE(rows);
      CAPTURE(powers);
      const Floats x = drawn(rows, columns, 3);
      std::vector<uint8_t> values(x.x.size());
      std::vector<float> scales(static_cast<size_t>(blocks_of(rows) * blocks_of(columns)));
      cast_blocks(x.matrix(), powers, values, scales);
      int wrong = 0;
      for (int64_t i = 0; i < rows * columns; ++i) {
        const float scale = scales[static_cast<size_t>(i / columns / 128 * blocks_of(columns) + i % columns / 128)];
        int exponent = 0;
        if (powers && std::frexp(scale, &exponent) != 0.5f) ++wrong;
        const float scaled = x.x[static_cast<size_t>(i)] / scale;
        // Division rounds otherwise than the factor does: either neighbour where it is between two.
        const float got = decoded(values[static_cast<size_t>(i)]), best = decoded(nearest(scaled));
        wrong += std::abs(got - scaled) > std::abs(best - scaled) * 1.0001f + 1e-6f;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the largest of a block is 448, zeros stay zeros, and what is not finite is seen") {
  Floats x = drawn(128, 256, 5);
  for (int64_t row = 0; row < 128; ++row) std::fill_n(x.x.begin() + row * 256, 128, 0.0f);
  std::vector<uint8_t> values(x.x.size());
  std::vector<float> scales(2);
  cast_blocks(x.matrix(), false, values, scales);
  CHECK(scales[0] == 1);
  CHECK(values[5] == 0);
  float largest = 0;
  for (const uint8_t code : values) largest = std::max(largest, std::abs(decoded(code)));
  CHECK(largest == 448);
  for (const float odd : {INFINITY, NAN}) {
    x.x[3] = odd;
    cast_blocks(x.matrix(), false, values, scales);
    CHECK(std::isnan(scales[0]));
    CHECK(values[0] == 0x7f);
    CHECK(std::isfinite(scales[1]));
  }
}

TEST_CASE("MX has an exponent a strip of 32, and never that of TensorRT-LLM's zero") {
  Floats x = drawn(3, 64, 7);
  std::fill_n(x.x.begin(), 32, 0.0f);
  x.x[32] = 448, x.x[33] = 448.5f;  // just beyond a power's range
  std::vector<uint8_t> values(x.x.size()), exponents(6);
  cast_strips(x.matrix(), values, exponents);
  CHECK(exponents[0] == 1);
  CHECK(values[0] == 0);
  CHECK(exponents[1] == 128);  // 2^1: 448 / 2 = 224
  CHECK(decoded(values[32]) == 224);
  for (int64_t i = 64; i < 192; ++i) {
    const float scale = std::ldexp(1.0f, exponents[static_cast<size_t>(i / 32)] - 127);
    CHECK(values[static_cast<size_t>(i)] == nearest(x.x[static_cast<size_t>(i)] / scale));
  }
}

TEST_CASE("blocks are those of NeMo-RL's cast, bit for bit") {
  const Json recorded = golden();
  for (const Json& cast : recorded.at("casts")) {
    const auto rows = cast.at("rows").get<int64_t>(), columns = cast.at("columns").get<int64_t>();
    std::vector<uint16_t> x;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const bool zero = i / 128 == cast.at("zero_block")[0] && j / 128 == cast.at("zero_block")[1];
        const int64_t down = i / 128, right = j / 128;  // of the block
        const double stretch = cast.value("stretched", false) ? 1 + 0.37 * static_cast<double>(down + 3 * right) : 1;
        const double value = static_cast<double>((i * 7919 + j * 104729) % 2003 - 1001) / 1001 *
                             std::ldexp(1.0, static_cast<int>((i / 128 + 2 * (j / 128)) % 5) - 3) * stretch;
        x.push_back(zero ? uint16_t{0} : bf16(value));
      }
    }
    REQUIRE(hexad::sha256_hex(std::as_bytes(std::span(x))) == cast.at("input_sha256"));
    std::vector<uint8_t> values(x.size());
    std::vector<float> scales(static_cast<size_t>(blocks_of(rows) * blocks_of(columns)));
    cast_blocks({reinterpret_cast<const std::byte*>(x.data()), {kDLBfloat, 16, 1}, rows, columns},
                cast.at("pow2_weight_scaling_factors"), values, scales);
    std::vector<float> wanted;
    for (const Json& row : cast.at("scale_inv"))
      for (const Json& scale : row) wanted.push_back(scale.get<float>());
    CHECK(scales == wanted);
    CHECK(std::vector<uint8_t>(values.begin(), values.begin() + 16) ==
          cast.at("first_values").get<std::vector<uint8_t>>());
    CHECK(hexad::sha256_hex(std::as_bytes(std::span(values))) == cast.at("values_sha256"));
  }
}
