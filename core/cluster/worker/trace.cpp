// The command `trace`: begins a trace of what this worker does, or ends it and writes it.
#include <filesystem>

#include "lib/base/error.hpp"
#include "core/cluster/worker/state.hpp"

namespace hexad::cluster::command {
namespace {

std::string path_of_rank(const std::filesystem::path& path, int rank) {
  const std::string name = fmt::format("{}-rank{}{}", path.stem().string(), rank, path.extension().string());
  return path.parent_path() / name;
}

}  // namespace

// {"path": null} begins; a path, with the rank put before its extension, ends: trace.json -> trace-rank3.json.
Message trace(WorkerState& state, const Message& message) {
  if (!state.runtime_started) fail(ErrorKind::worker, "a trace needs the runtime, and this build has none");
  const Json& path = message.header.at("path");
  const hexad_code code = path.is_null()
                              ? state.runtime->trace_start()
                              : state.runtime->trace_save(path_of_rank(path.get<std::string>(), state.rank).c_str());
  if (code != HEXAD_OK) fail(ErrorKind::worker, "runtime: {}", state.runtime->error());
  return {};
}

}  // namespace hexad::cluster::command
