#include "core/plugin/confined/serve/server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "core/plugin/confined/serve/kind_server.hpp"
#include "core/plugin/crash_report.hpp"
#include "core/plugin/precheck.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/thrown.hpp"

namespace hexad::plugin::confined {
namespace {

// The one plugin of this process; never destroyed.
struct Served {
  LoadedPlugin plugin;
  std::unique_ptr<KindServer> kind;
  std::string who, label;
};
std::atomic<Served*> served = nullptr;

// Lines of a call go to the engine's log in their order; those of the plugin's own threads to standard error.
class LogSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    ServedLane* lane = ServedLane::of_this_thread();
    if (!lane) {
      fmt::print(stderr, "{}\n", indented(text));
      return;
    }
    Writer line;
    line.put(static_cast<int32_t>(message.level));
    line.text(text);
    lane->send(kLog, line.bytes());
  }
  void flush_() override {}
};

hexad_code load_plugin(ServedCall& call) {
  spdlog::set_level(static_cast<spdlog::level::level_enum>(call.in.get<int32_t>()));
  Candidate candidate;
  candidate.manifest_path = call.in.text();
  candidate.manifest = read_manifest(candidate.manifest_path);
  candidate.trusted = true;  // the engine has checked the place, and said so where that must be said
  const std::string path = std::filesystem::canonical(candidate.library()).string();
  if (candidate.manifest->sha256 != call.in.text()) fail(ErrorKind::plugin, "{}: changed while it was loaded", path);
  PluginName wanted;
  wanted.kind = static_cast<Kind>(call.in.get<int32_t>()), wanted.name = call.in.text();
  if (candidate.manifest->plugin() != wanted) candidate.manifest = candidate.manifest->of(wanted);
  const ResolvedFile file = check_before_load(candidate, Options(), nullptr);
  auto* made = new Served{open_plugin(*candidate.manifest, file, served_host()), nullptr, "", ""};
  const hexad_plugin_desc& desc = *made->plugin.desc;
  made->kind = make_kind_server(made->plugin);
  made->who = fmt::format("{} '{}'", kind_name(made->plugin.kind()), made->plugin.manifest.name);
  made->label = made->plugin.label();
  call.out.put(desc.abi_minor);
  call.out.put(desc.min_host_minor);
  for (const char* text : {desc.name, desc.version, desc.license, desc.build_id}) call.out.optional_text(text);
  made->kind->facts(call.out);
  served = made;
  return HEXAD_OK;
}

hexad_code serve_function(std::string_view function, ServedCall& call) {
  const Served* plugin = served;
  if (function == kLoad) {
    try {
      return load_plugin(call);
    } catch (const std::exception& error) {
      return call.set_error(HEXAD_INTERNAL, error.what());
    }
  }
  const CrashMark mark(plugin->label, function, call.context().step);
  try {
    return plugin->kind->serve(function, call);
  } catch (...) {
    return call.set_error(HEXAD_INTERNAL, fmt::format("threw a C++ exception across the ABI: {}: the plugin is faulty, "
                                                      "tell its author",
                                                      thrown_text()));
  }
}

void serve_call(ServedLane& lane, const Frame& frame) {
  Reader in(frame.bytes);
  const auto head = in.get<CallHead>();
  const std::string function = in.text();
  lane.take_memory(head, frame.descriptors);
  const Served* plugin = served;
  ServedCall call(lane, head, plugin ? std::string_view(plugin->who) : "plugin", in);
  const hexad_code code = serve_function(function, call);
  Writer answer;
  answer.put(code);
  answer.text(call.error_text());
  if (code == HEXAD_OK) answer.append(call.out.bytes());
  lane.answer(answer.bytes());
}

// The engine is gone, or this side does not understand it: there is nobody left to serve.
void serve_lane(int socket) {
  try {
    ServedLane lane(socket);
    ServedLane::of_this_thread() = &lane;
    while (true) serve_call(lane, lane.next_call());
  } catch (const Closed&) {
    ::_exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hexad: {}\n", error.what());
    ::_exit(1);
  }
}

}  // namespace

std::unique_ptr<KindServer> make_kind_server(const LoadedPlugin& plugin) {
  switch (plugin.kind()) {
    case Kind::loss: return serve_loss(plugin);
    case Kind::generator: return serve_generator(plugin);
    case Kind::environment: return serve_environment(plugin);
    default: fail(ErrorKind::plugin, "{}: its kind is not served in a process of its own", plugin.label());
  }
}

int serve() {
  int kind = 0;
  socklen_t size = sizeof kind;
  if (::getsockopt(kControlDescriptor, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind != SOCK_STREAM) {
    fmt::print(stderr,
               "hexad: `hexad {}` is started by the engine for plugins.own_process; it is not for the command "
               "line\n",
               kCommand);
    return 2;
  }
  ::fcntl(kControlDescriptor, F_SETFD, FD_CLOEXEC);
  install_crash_report();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("hexad", std::make_shared<LogSink>()));
  Channel control(kControlDescriptor, /*takes_descriptors=*/true);
  try {
    while (const std::optional<Frame> frame = control.receive()) {
      for (const int socket : frame->descriptors) std::thread(serve_lane, socket).detach();
    }
  } catch (const std::exception&) {  // the engine is gone
  }
  ::_exit(0);
}

}  // namespace hexad::plugin::confined
