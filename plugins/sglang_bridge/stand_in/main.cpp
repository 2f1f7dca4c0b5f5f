// sglang_stand_in --model-path DIR --port PORT --config FILE [options of SGLang, which it ignores]. The conformance kit
// verifies the bridge with it where there is no SGLang.
#include <cstdio>

#include "plugins/sglang_bridge/stand_in/server.hpp"

int main(int argc, char** argv) {
  using namespace hexad::sglang::stand_in;
  try {
    const Options options = read_options(argc, argv);
    Server server(options.model_dir, options.api_key);
    serve(options.port, [&](const Connection& to, const Request& request) { server.handle(to, request); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sglang_stand_in: %s\n", error.what());
    return 1;
  }
}
