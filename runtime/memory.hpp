// Memory and copies of the C table.
#pragma once
#include "runtime/runtime.h"

namespace hexad::runtime {

void* stream(int32_t device_type, int32_t device_id);
hexad_code alloc(int32_t device_type, int32_t device_id, uint64_t bytes, void** out);
void free(void* pointer, int32_t device_type, int32_t device_id);
hexad_code tensor_new(const DLTensor* prototype, DLManagedTensorVersioned** out);
hexad_code copy(const DLTensor* source, DLTensor* destination);

}  // namespace hexad::runtime
