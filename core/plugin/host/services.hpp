// The groups of services that make up the host table; internal to host_table.
#pragma once
#include <exception>
#include <new>

#include <hexad/abi.h>

#include "core/plugin/call.hpp"
#include "runtime/runtime.h"

namespace hexad::plugin {

// Runs engine code that a plugin called: an exception becomes the call's error, so that none crosses the ABI.
template <typename Function>
hexad_code guarded(hexad_call* call, Function&& function) {
  try {
    function();
    return HEXAD_OK;
  } catch (const std::bad_alloc&) {
    return Call::from(call).set_error(HEXAD_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& error) {
    return Call::from(call).set_error(HEXAD_INTERNAL, error.what());
  }
}

void add_config_services(hexad_host& host);
// Memory, streams, process groups and trace ranges: through the runtime, or without one (malloc, CPU, one rank).
void add_runtime_services(hexad_host& host, const hexad_runtime* runtime);
void add_plain_services(hexad_host& host);

}  // namespace hexad::plugin
