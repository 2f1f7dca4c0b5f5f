// The model's weights under their Hugging Face names, and how a new set takes their place.
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "modeling/family/model_config.hpp"
#include "modeling/family/weight_table.hpp"
#include "plugins/native/model/fp8_rows.hpp"
#include "plugins/native/parallel/shard.hpp"

namespace hexad::native {

using WeightMap = std::map<std::string, at::Tensor>;

// Reads the shard's part of every weight of it, checked, in `dtype` on `device`, or into `places` where there are any
// (in FP8, with scales, where a place is so). Throws modeling::Error.
WeightMap load_weights(const std::filesystem::path& dir, const modeling::ModelConfig& config, at::ScalarType dtype,
                       at::Device device, WeightMap places = {}, const Shard& shard = {});

// A set of weights on its way in: copied to `places`, which nobody reads before the set is complete, or to memory of
// its own, so that the old set serves until then. (The slices are borrowed for the length of a call, so they cannot be
// used as they are.) Of what comes, the shard's parts are kept. Copies are enqueued on LibTorch's current stream.
//
// fp8: a matrix of a layer is cast as soon as it is whole, from `dtype`, and only the cast is kept: beside it there is
// never more in `dtype` than the matrices that have come in part. The set has scales too, under scales_name().
class WeightUpdate {
 public:
  WeightUpdate(const modeling::ModelConfig& config, at::ScalarType dtype, at::Device device, WeightMap places = {},
               bool fp8 = false, const Shard& shard = {});

  // Copies whole weights or slices of them, of any floating-point dtype and device. Throws sdk::Error (invalid
  // argument): unknown name, wrong global shape, a slice outside of it, a strange dtype, more elements than there are.
  void add(const hexad_weight_list& bucket);
  // The complete set. Throws sdk::Error (failed precondition) naming weights that have not arrived in full.
  WeightMap finish();

 private:
  struct Arriving {
    at::Tensor tensor;  // without a place: undefined until its first slice
    WeightPart part;
    int64_t missing;  // elements
    bool fp8 = false;
    Fp8Rows rows = {};  // in FP8: its place, or memory that comes with the cast
  };
  void cast(Arriving& weight, const at::Tensor& whole);
  void add(const hexad_weight_slice& slice);

  std::map<std::string, Arriving> weights_;
  bool tied_;
  at::ScalarType dtype_;
  at::Device device_;
};

}  // namespace hexad::native
