// Host tensors and batches as the ABI shows them to plugins.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/data/batch.hpp"

namespace hexad::cluster {

// The element type of a plugin's tensor; nothing where the engine has none for it.
std::optional<data::DType> dtype_of(DLDataType type);

// A DLTensor over a data::Tensor's buffer. Not copyable: the DLTensor points into it.
class TensorView {
 public:
  explicit TensorView(const data::Tensor& tensor);
  TensorView(const TensorView&) = delete;
  TensorView& operator=(const TensorView&) = delete;

  DLTensor* get() { return &view_; }
  const data::Tensor& tensor() const { return tensor_; }

 private:
  data::Tensor tensor_;  // shares the buffer
  std::vector<int64_t> shape_, strides_;
  DLTensor view_{};
};

// A micro-batch as hexad_batch, with every column of `batch` or those that are named, in that order (missing ones are
// absent tensors). Keeps everything it points to. Not copyable.
class BatchView {
 public:
  BatchView(data::Batch batch, const std::vector<std::string>& names, int64_t padded_length, bool dummy);
  BatchView(const BatchView&) = delete;
  BatchView& operator=(const BatchView&) = delete;

  const hexad_batch* get() const { return &view_; }
  const data::Batch& batch() const { return batch_; }

 private:
  data::Batch batch_;
  std::vector<std::string> names_;
  std::deque<TensorView> views_;
  std::vector<hexad_named_tensor> tensors_;
  hexad_batch view_{};
};

// Every column of a batch as named tensors, for a loss.
class ColumnViews {
 public:
  explicit ColumnViews(const data::Batch& batch);
  std::span<const hexad_named_tensor> get() const { return tensors_; }

 private:
  std::deque<TensorView> views_;
  std::deque<std::string> names_;
  std::vector<hexad_named_tensor> tensors_;
};

}  // namespace hexad::cluster
