// faulty_vllm: a stand-in for a vLLM server that fails by a schedule (faulty_server.hpp).
#include "plugins/vllm_bridge/stand_in/server.hpp"
#include "tests/run/faults/faulty_server.hpp"

namespace faults {
namespace {

const std::map<std::string, std::string> kPointOfPath = {{"/health", "health"},
                                                         {"/version", "version"},
                                                         {"/is_paused", "is_paused"},
                                                         {"/pause", "pause"},
                                                         {"/resume", "resume"},
                                                         {"/collective_rpc", "reload"},
                                                         {"/reset_prefix_cache", "reset"},
                                                         {"/inference/v1/generate", ""}};

struct Vllm {
  using Server = hexad::vllm::stand_in::Server;
  using Generation = hexad::vllm::stand_in::Generation;
  using Options = hexad::vllm::stand_in::Options;

  static Options read_options(int argc, char** argv) { return hexad::vllm::stand_in::read_options(argc, argv); }

  static std::string point_of(const Request& request) {
    const auto found = kPointOfPath.find(request.path.substr(0, request.path.find('?')));
    if (found == kPointOfPath.end()) return "other";
    if (!found->second.empty()) return found->second;
    return request.body == "{}" ? "api" : "prefill";
  }

  static std::string name_of(const Request& request) { return Json::parse(request.body).value("request_id", ""); }

  static std::string stranger() { return R"({"object":"list","data":[{"id":"other","max_model_len":8}]})"; }

  static void send_wrong(const Connection& to, const Generation&, const Fault& fault) {
    if (fault.kind != "wrong_count") return;
    const Json choice = {{"index", 0}, {"token_ids", {3, 4}}, {"logprobs", {{"content", {{{"logprob", -1.0}}}}}}};
    to.event(Json{{"request_id", "fault " + fault.name}, {"choices", {choice}}}.dump());
  }
};

}  // namespace
}  // namespace faults

int main(int argc, char** argv) {
  try {
    return faults::run<faults::Vllm>(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faulty_vllm: %s\n", error.what());
    return 1;
  }
}
