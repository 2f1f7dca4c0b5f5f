// DLPack's owned tensor under a name of the SDK's.
#pragma once
#include <dlpack.h>

namespace hexad::sdk {

// The tensor together with its deleter: whoever holds the pointer calls `deleter` once.
using TensorHandle = ::DLManagedTensorVersioned;

}  // namespace hexad::sdk
