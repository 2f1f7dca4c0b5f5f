#include "sdk/verify/case/backend_case.hpp"

#include <algorithm>

namespace hexad::verify {
namespace {

// Iterates once; counts how often a name of the layout comes.
class Iteration {
 public:
  Iteration(const Subject& subject, hexad_backend* self, Findings& findings)
      : vtable_(*subject.desc->backend), subject_(subject), self_(self), findings_(findings) {}

  bool read_layout() {
    hexad_weight_list layout{};
    layout.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
    if (!run("weight_layout", [&](hexad_call* call) { return vtable_.weight_layout(self_, call, &layout); }))
      return false;
    for (int64_t i = 0; i < layout.count; ++i) {
      const hexad_weight_slice& slice = layout.slices[i];
      findings_.expect(times_.emplace(slice.name, 0).second, "weight_layout",
                       std::string(slice.name) + " stands twice");
      for (int32_t d = 0; d < slice.ndim; ++d) {
        findings_.expect(slice.offsets[d] >= 0 && slice.offsets[d] + slice.shape[d] <= slice.global_shape[d],
                         "weight_layout", std::string(slice.name) + " reaches beyond its global shape");
      }
    }
    return true;
  }

  bool begin() {
    const hexad_weights_request request = {HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes),
                                           HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, 0, 1 << 20};
    return run("weights_begin", [&](hexad_call* call) { return vtable_.weights_begin(self_, call, &request); });
  }
  void end() { vtable_.weights_end(self_); }

  // True while there is more.
  bool next(std::map<std::string, std::string>& bytes) {
    hexad_weight_list bucket{};
    bucket.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
    if (!run("weights_next", [&](hexad_call* call) { return vtable_.weights_next(self_, call, &bucket); }))
      return false;
    for (int64_t i = 0; i < bucket.count; ++i) take(bucket.slices[i], bytes);
    return bucket.count > 0 && ++buckets_ < 100'000;
  }

  void report() {
    for (const auto& [name, count] : times_)
      findings_.expect(count == 1, "weights_next", name + " was delivered " + std::to_string(count) + " times");
  }

 private:
  void take(const hexad_weight_slice& slice, std::map<std::string, std::string>& bytes) {
    ++times_[slice.name];
    const DLTensor* tensor = slice.tensor;
    if (!findings_.expect(tensor != nullptr, "weights_next", std::string(slice.name) + " carries no data")) return;
    const bool same = tensor->ndim == slice.ndim && std::equal(tensor->shape, tensor->shape + slice.ndim, slice.shape);
    if (!findings_.expect(same, "weights_next", std::string(slice.name) + " carries a tensor of another shape")) return;
    size_t size = slice.dtype.bits / 8;
    for (int32_t d = 0; d < slice.ndim; ++d) size *= static_cast<size_t>(slice.shape[d]);
    if (tensor->device.device_type == kDLCPU) bytes[slice.name] = std::string(HEXAD_DATA(const char, tensor), size);
  }

  template <typename Function>
  bool run(const std::string& name, Function&& function) {
    const auto call = subject_.engine->call();
    return findings_.expect(function(call->handle()) == HEXAD_OK, name, "it failed: " + call->text());
  }

  const hexad_backend_vtable& vtable_;
  const Subject& subject_;
  hexad_backend* self_;
  Findings& findings_;
  std::map<std::string, int> times_;
  int buckets_ = 0;
};

}  // namespace

std::map<std::string, std::string> export_weights(const Subject& subject, hexad_backend* self, Findings& findings) {
  std::map<std::string, std::string> bytes;
  Iteration left(subject, self, findings), whole(subject, self, findings);
  if (!whole.read_layout()) return bytes;
  if (left.begin()) left.next(bytes), left.end();  // one that stops early must not disturb the next
  bytes.clear();
  if (!whole.begin()) return bytes;
  while (whole.next(bytes)) {
  }
  whole.end();
  whole.report();
  return bytes;
}

}  // namespace hexad::verify
