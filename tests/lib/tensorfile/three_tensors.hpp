// Three small tensors, written and read.
#pragma once
#include <doctest/doctest.h>

#include <span>
#include <vector>

#include "lib/tensorfile/safetensors_writer.hpp"
#include "tests/checkpoint/temp_folder.hpp"

inline std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

inline const std::vector<hexad::tensorfile::TensorSpec> kThree = {{"a", hexad::tensorfile::DType::f32, {2}},
                                                                  {"b", hexad::tensorfile::DType::f32, {2, 2}},
                                                                  {"c", hexad::tensorfile::DType::f32, {}}};

// kThree with a = 1 2, b = 3 4 5 6, c = 7; in another order than in the file.
template <typename Writer>
void write_three(Writer& writer) {
  writer.write("b", bytes_of({3, 4, 5, 6}));
  writer.write("c", bytes_of({7}));
  writer.write("a", bytes_of({1, 2}));
  writer.finish();
}

inline void check_three(const hexad::tensorfile::Safetensors& read) {
  REQUIRE(read.tensors().size() == 3);
  CHECK(to_float32(read.at("a")) == std::vector<float>{1, 2});
  CHECK(to_float32(read.at("b")) == std::vector<float>{3, 4, 5, 6});
  CHECK(read.at("b").shape == std::vector<int64_t>{2, 2});
  CHECK(to_float32(read.at("c")) == std::vector<float>{7});
}
