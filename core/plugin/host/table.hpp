// The hexad_host table: every service that plugins get.
#pragma once
#include <hexad/abi.h>

#include "runtime/runtime.h"

namespace hexad::plugin {

// The table for a process whose device half is `runtime`. With null (a process without LibTorch) memory is malloc's,
// only the CPU exists, comm_axis gives NULL and the other communicator functions fail with FAILED_PRECONDITION.
// Immutable and valid for the life of the process; asking twice gives the same table. One process has at most one
// runtime: another one throws Error(internal).
const hexad_host* host_table(const hexad_runtime* runtime);

// The runtime behind a table, or null.
const hexad_runtime* runtime_of(const hexad_host* host);

}  // namespace hexad::plugin
