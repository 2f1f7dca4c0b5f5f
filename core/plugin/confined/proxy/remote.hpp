// Calls of the engine into a confined plugin.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <hexad/abi.h>

#include "core/plugin/call.hpp"
#include "core/plugin/confined/proxy/process.hpp"
#include "core/plugin/confined/proxy/request.hpp"
#include "core/plugin/confined/wire.hpp"

namespace hexad::plugin::confined {

// One plugin's process. Thread-safe: calls that run at the same time (thread class A) have a connection and a thread
// over there each; a connection is made when all others are in use, and kept.
class Remote {
 public:
  // Starts the process. `limit_s`: how long a call may take that has no deadline of its own. Throws Error(worker).
  Remote(const std::filesystem::path& program, double limit_s);

  // Calls `function` of `instance` (0: none); `config` answers what the plugin asks of its configuration. On success
  // reads the results. Everything that goes wrong is a code and a text of `call`, UNAVAILABLE if the process is lost.
  hexad_code call(hexad_call* call, std::string_view function, uint64_t instance, const hexad_config* config,
                  const Request& request, const std::function<void(Reader&)>& results = {});

  // Ends the process of a plugin that is refused.
  void end() { process_.end("was refused"); }

 private:
  struct Lane {
    explicit Lane(std::unique_ptr<Channel> channel) : channel(std::move(channel)) {}
    std::atomic<bool>& cancelled() const { return reinterpret_cast<SharedHead*>(down.memory.data())->cancelled; }

    std::unique_ptr<Channel> channel;
    Arena down, up;
    bool in_call = false;
  };
  struct Borrowed;

  hexad_code exchange(Lane& lane, hexad_call* call, std::string_view function, uint64_t instance,
                      const hexad_config* config, const Request& request, const std::function<void(Reader&)>& results);
  void send(Lane& lane, const CallContext& context, std::string_view function, uint64_t instance,
            const Request& request, int64_t end);
  Lane& borrow();
  void give_back(Lane& lane);
  // How the process was lost, after ending it for `why` if that is not empty.
  std::string lost(std::string_view function, const std::string& why);

  Process& process_;
  int64_t limit_ns_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // kept to the end: the process remembers their sockets
  std::vector<Lane*> idle_;
  std::string lost_;  // the first account of how it was lost; later calls say the same
};

}  // namespace hexad::plugin::confined
