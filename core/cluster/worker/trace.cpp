// The command `trace`: begins a trace of what this worker does, or ends it and writes it.
#include <filesystem>

#include "core/cluster/worker/state.hpp"
#include "lib/base/error.hpp"

namespace hexad::cluster::command {
namespace {

std::string path_of_rank(const std::filesystem::path& path, int rank) {
  const std::string name = fmt::format("{}-rank{}{}", path.stem().string(), rank, path.extension().string());
  return path.parent_path() / name;
}

}  // namespace

protocol::Nothing trace(WorkerState& state, const protocol::Trace& trace) {
  if (!state.runtime_started) fail(ErrorKind::worker, "a trace needs the runtime, and this build has none");
  const hexad_code code = trace.path ? state.runtime->trace_save(path_of_rank(*trace.path, state.rank).c_str())
                                     : state.runtime->trace_start();
  if (code != HEXAD_OK) fail(ErrorKind::worker, "runtime: {}", state.runtime->error());
  return {};
}

}  // namespace hexad::cluster::command
