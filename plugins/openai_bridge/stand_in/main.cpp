// openai_stand_in --model DIR --port PORT [--served-model-name NAME] [options that it ignores]. The conformance kit
// verifies the bridge with it where there is no server. VLLM_API_KEY: the key that it asks for.
#include <cstdio>
#include <cstdlib>

#include "plugins/openai_bridge/stand_in/server.hpp"

int main(int argc, char** argv) {
  using namespace hexad::openai::stand_in;
  std::string model, name = "stand-in";
  int port = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--model") model = argv[i + 1];
    if (option == "--served-model-name") name = argv[i + 1];
    if (option == "--port") port = std::atoi(argv[i + 1]);
  }
  try {
    const char* key = std::getenv("VLLM_API_KEY");
    const Server server(model, name, key ? key : "");
    serve(port, [&](const Connection& to, const Request& request) { server.handle(to, request); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "openai_stand_in: %s\n", error.what());
    return 1;
  }
}
