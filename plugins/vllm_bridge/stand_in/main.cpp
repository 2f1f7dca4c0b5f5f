// vllm_stand_in --model DIR --port PORT [options of vLLM, which it ignores]. The conformance kit verifies the bridge
// with it where there is no vLLM.
#include <cstdio>

#include "plugins/vllm_bridge/stand_in/server.hpp"

int main(int argc, char** argv) {
  using namespace hexad::vllm::stand_in;
  try {
    const Options options = read_options(argc, argv);
    Server server(options.model_dir, options.api_key);
    serve(options.port, [&](const Connection& to, const Request& request) { server.handle(to, request); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vllm_stand_in: %s\n", error.what());
    return 1;
  }
}
