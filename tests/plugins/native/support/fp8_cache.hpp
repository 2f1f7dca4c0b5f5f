// Keys and values by way of e4m3: what a cache of kv_cache_dtype fp8 makes of them.
#pragma once
#include <ATen/Functions.h>

#include "modeling/family/transformer.hpp"

namespace native_test {

inline at::Tensor through_e4m3(const at::Tensor& x) {
  return x.clamp(-448, 448).to(at::kFloat8_e4m3fn).to(x.scalar_type());
}

// `attention` over such keys and values, or over those that it gets.
class Fp8CacheAttention : public hexad::modeling::Attention {
 public:
  Fp8CacheAttention(hexad::modeling::Attention& attention, bool fp8) : attention_(attention), fp8_(fp8) {}
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override {
    return fp8_ ? attention_.attend(layer, q, through_e4m3(k), through_e4m3(v)) : attention_.attend(layer, q, k, v);
  }

 private:
  hexad::modeling::Attention& attention_;
  bool fp8_;
};

}  // namespace native_test
