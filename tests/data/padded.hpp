// Between packed token columns [T, ...] and the right-padded [B, S, ...] of golden vectors.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/data/batch.hpp"

// Whole rows of [B, S, ...], one after the other: [B * S, ...].
inline hexad::data::Tensor pack_rows(const hexad::data::Tensor& padded) {
  std::vector<int64_t> shape(padded.shape().begin() + 1, padded.shape().end());
  shape[0] *= padded.size(0);
  return padded.reshape(std::move(shape));
}

// A token column as [B, S, ...], filled up with `pad_value`; S is the longest sample.
inline hexad::data::Tensor to_padded(const hexad::data::Batch& batch, const std::string& name, double pad_value) {
  const hexad::data::Tensor& packed = batch.at(name);
  const std::vector<int64_t> lengths = batch.lengths();
  std::vector<int64_t> shape = packed.shape();
  shape[0] = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  shape.insert(shape.begin(), batch.size());
  auto padded = hexad::data::Tensor::full(packed.dtype(), std::move(shape), pad_value);
  int64_t begin = 0;
  for (int64_t row = 0; row < batch.size(); begin += lengths[row++]) {
    const auto source = packed.slice(begin, begin + lengths[row]).bytes();
    std::copy(source.begin(), source.end(), static_cast<std::byte*>(padded.data()) + row * padded.row_bytes());
  }
  return padded;
}
