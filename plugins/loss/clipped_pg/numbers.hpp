// Arithmetic with the overflow behaviour of fp32, in which the formulas were defined.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

// What a host loop and a GPU's kernel share.
#ifdef __CUDACC__
#define CLIPPED_PG_BOTH __host__ __device__ inline
#else
#define CLIPPED_PG_BOTH inline
#endif

namespace clipped_pg {

// exp that overflows where fp32 does: weights that overflow are dropped, so the limit is part of the formula.
CLIPPED_PG_BOTH double exp_f32(double x) {
  const double e = std::exp(x);
  return e > std::numeric_limits<float>::max() ? std::numeric_limits<double>::infinity() : e;
}

CLIPPED_PG_BOTH double to_f32(double x) { return static_cast<float>(x); }

CLIPPED_PG_BOTH double finite_or_zero(double x) { return std::isfinite(x) ? x : 0; }

// Keeps nan.
CLIPPED_PG_BOTH double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// masked_mean's denominator.
CLIPPED_PG_BOTH double denominator(double count) { return count + 1e-8; }

}  // namespace clipped_pg
