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
  for (const Case& each : cases) CHECK(fp8_obstacle(each.fp8, /*experts=*/false, each.capability) == each.wanted);
}

TEST_CASE("FP8 products of experts want compute capability 9.0 or 10.0") {
  for (const int capability : {90, 100}) CHECK(fp8_obstacle(Fp8::hybrid, /*experts=*/true, capability).empty());
  CHECK(fp8_obstacle(Fp8::off, /*experts=*/true, 120).empty());
  CHECK(fp8_obstacle(Fp8::hybrid, /*experts=*/true, 120) ==
        "FP8 with experts wants a card of compute capability 9.0 or 10.0, this one has 12.0: set enabled: false");
}

TEST_CASE("on a CPU nothing is asked of a card") {
  CHECK_NOTHROW(check_gpu(Fp8::hybrid, true, at::kCPU, "dtensor_cfg"));
}
