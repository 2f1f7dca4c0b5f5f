// What a confined plugin says and asks while a call runs, served by the engine as the host table would in process.
#pragma once
#include <optional>
#include <string>

#include <hexad/abi.h>

#include "core/plugin/confined/proxy/request.hpp"
#include "core/plugin/confined/wire.hpp"

namespace hexad::plugin::confined {

class Questions {
 public:
  // All borrowed. `config` may be null where the plugin has none.
  Questions(hexad_call* call, const hexad_config* config, const Request& request)
      : call_(call), config_(config), request_(request) {}

  // The bytes of the reply, if the frame is a question. Throws BadPacket for a frame that is neither.
  std::optional<std::string> serve(const Frame& frame);
  // Why a metric could not be taken; "" if all could.
  const std::string& failure() const { return failure_; }

 private:
  void metric(Reader in);
  std::string detokenize(Reader in) const;
  std::string read_config(Reader in) const;
  std::string sink(std::string_view bytes) const;

  hexad_call* call_;
  const hexad_config* config_;
  const Request& request_;
  std::string failure_;
};

}  // namespace hexad::plugin::confined
