#include "plugins/sglang_bridge/refit/pickle.hpp"

namespace hexad::sglang {
namespace {

using bridge::Pickle;

void add_metadata(Pickle& pickle, const hexad_weight_slice& weight, int64_t begin, int64_t size) {
  pickle.global("sglang.srt.weight_sync.tensor_bucket", "FlattenedTensorMetadata").object().dict();
  pickle.string("name").string(weight.name).set_item();
  pickle.string("shape").global("torch", "Size").mark().mark();
  for (int32_t d = 0; d < weight.ndim; ++d) pickle.integer(weight.shape[d]);
  pickle.tuple().tuple().call().set_item();
  const char* type = refit::element_type(weight.tensor->dtype, weight.name).torch;
  pickle.string("dtype").global("torch", type).set_item();
  pickle.string("start_idx").integer(begin).set_item();
  pickle.string("end_idx").integer(begin + size).set_item();
  pickle.string("numel").integer(size).set_item();  // bytes
  pickle.set_state();
}

}  // namespace

std::string bucket_pickle(const bridge::SharedMemory& memory, refit::Slices weights, std::span<const int64_t> sizes) {
  Pickle pickle;
  pickle.dict().string("flattened_tensor");
  // Torch's own function takes the number that a GPU has in the sender; SGLang's in front of it finds it by its UUID.
  pickle.global("sglang.srt.utils.patch_torch", "_rebuild_cuda_tensor_modified");
  bridge::add_tensor_arguments(pickle, memory, [&](Pickle& p) { p.string(memory.uuid); });
  pickle.call().set_item();
  pickle.string("metadata").list().mark();
  int64_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    add_metadata(pickle, *weights[i], begin, sizes[i]);
    begin += sizes[i];
  }
  return pickle.append_all().set_item().end();
}

}  // namespace hexad::sglang
