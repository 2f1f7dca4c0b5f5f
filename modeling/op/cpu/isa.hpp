// The instruction set that kernels are chosen for, found once, and the attributes of those that are written for one.
#pragma once

#if defined(__x86_64__)
#define HEXAD_TARGET_V4 __attribute__((target("arch=x86-64-v4,prefer-vector-width=512")))
#define HEXAD_TARGET_V3 __attribute__((target("arch=x86-64-v3")))
#endif

namespace hexad::modeling::cpu {

enum class Isa { base, v3, v4 };  // x86-64-v3: AVX2 and FMA; x86-64-v4: AVX-512

inline Isa isa() {
#if defined(__x86_64__)
  static const Isa found =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
          ? Isa::v4
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? Isa::v3
                                                                                                          : Isa::base;
  return found;
#else
  return Isa::base;
#endif
}

}  // namespace hexad::modeling::cpu
