// An engine whose worker has a GPU: the real one, with device, stream and memory of a CudaDevice.
#pragma once
#include "sdk/verify/cuda/device.hpp"
#include "sdk/verify/engine.hpp"

namespace hexad::verify {

// One in a process, because services without a call argument have nothing else to find it by. A call makes the context
// current on the thread that asks for it, as the engine does before it calls a plugin.
class CudaEngine : public Engine {
 public:
  CudaEngine(Engine& real, CudaDevice& device);
  const hexad_host* host() const override { return host_; }
  std::unique_ptr<Call> call(const CallOptions& options) override;
  std::unique_ptr<Config> config(const std::map<std::string, std::string>& changes) override;

 private:
  Engine& real_;
  CudaDevice& device_;
  const hexad_host* host_;
};

}  // namespace hexad::verify
