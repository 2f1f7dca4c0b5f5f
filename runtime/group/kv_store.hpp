// Key/value store of the run.
#pragma once
#include "runtime/session.hpp"

namespace hexad::runtime {

hexad_code kv_put(const char* key, const void* value, uint64_t size);
// Waits up to timeout_ms (negative: the session's). *value is valid until this thread's next kv_get.
hexad_code kv_get(const char* key, int64_t timeout_ms, const void** value, uint64_t* size);

}  // namespace hexad::runtime
