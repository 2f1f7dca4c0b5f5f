// Which cards train in FP8, and what is said where one cannot.
#include "modeling/backend/settings/gpu.hpp"

#include <doctest/doctest.h>

using namespace hexad::modeling;

TEST_CASE("FP8 wants compute capability 8.9, and blocks of scales 9.0") {
  const std::string old = "FP8 wants a card of compute capability 8.9 or later, this one has 8.6: set enabled: false";
  const std::string ada =
      "the recipe blockwise wants a card of compute capability 9.0 (H100, H200), this one has 8.9: set fp8_recipe: "
      "tensorwise";
  struct Case {
    Fp8 fp8;
    int capability;
    std::string wanted;
  };
  const Case cases[] = {{Fp8::off, 80, ""},
                        {Fp8::e4m3, 86, old},
                        {Fp8::blockwise_e4m3, 86, old},
                        {Fp8::e4m3, 89, ""},
                        {Fp8::hybrid, 120, ""},
                        {Fp8::blockwise_hybrid, 89, ada},
                        {Fp8::blockwise_hybrid, 90, ""}};
  for (const Case& each : cases) CHECK(fp8_obstacle(each.fp8, each.capability) == each.wanted);
}

TEST_CASE("on a CPU nothing is asked of a card") { CHECK_NOTHROW(check_gpu(Fp8::hybrid, at::kCPU, "dtensor_cfg")); }
