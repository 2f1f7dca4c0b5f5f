// faulty_sglang: a stand-in for an SGLang server that fails by a schedule (faulty_server.hpp). In a stream it also
// answers with
//   wrong_count, other_id, nan, positive    tokens and log-probs that do not go together, or are none
//   fewer, changed, outside, too_many       other tokens than before, than the model has, than were asked for
//   short_spans, wrong_version              weights that this run has not given
//   early_end, twice, of_several, bare      an end too early or two ends, an event of several samples or without facts
//   let_go                                  an end of type abort, for nothing
#include "plugins/sglang_bridge/stand_in/server.hpp"
#include "tests/run/faults/faulty_server.hpp"

namespace faults {
namespace {

const std::map<std::string, std::string> kPointOfPath = {{"/health", "health"},
                                                         {"/server_info", "server_info"},
                                                         {"/model_info", "model_info"},
                                                         {"/update_weight_version", "name"},
                                                         {"/pause_generation", "pause"},
                                                         {"/continue_generation", "resume"},
                                                         {"/update_weights_from_disk", "reload"},
                                                         {"/flush_cache", "flush"},
                                                         {"/abort_request", "abort"},
                                                         {"/generate", "prefill"}};

struct Sglang {
  using Server = hexad::sglang::stand_in::Server;
  using Generation = hexad::sglang::stand_in::Generation;
  using Options = hexad::sglang::stand_in::Options;

  static Options read_options(int argc, char** argv) { return hexad::sglang::stand_in::read_options(argc, argv); }

  static std::string point_of(const Request& request) {
    const auto found = kPointOfPath.find(request.path);
    return found == kPointOfPath.end() ? "other" : found->second;
  }

  static std::string name_of(const Request& request) { return Json::parse(request.body).value("rid", ""); }

  static std::string stranger() {
    return R"({"model_path":"other","is_generation":true,"weight_version":"default","model_type":"another"})";
  }

  static void send_wrong(const Connection& to, const Generation& generation, const Fault& fault);
};

// An event of these tokens, with the log-probs of those that were drawn, and -1 for others.
Json event_of(const Sglang::Generation& generation, const std::vector<int32_t>& ids, const Fault& fault) {
  const auto logprob = [&](size_t i) { return i < generation.logprobs.size() ? generation.logprobs[i] : -1; };
  Json logprobs = Json::array();
  for (size_t i = 0; i < ids.size(); ++i) logprobs.push_back({logprob(i), ids[i], nullptr});
  const std::string version = generation.versions.empty() ? "0" : generation.versions.back();
  return {{"fault", "fault " + fault.name},
          {"text", ""},
          {"output_ids", ids},
          {"meta_info",
           {{"id", generation.name},
            {"finish_reason", nullptr},
            {"weight_version", version},
            {"output_token_logprobs", logprobs},
            {"completion_tokens", ids.size()}}}};
}

Json whole_span(const std::string& version, size_t end) {
  return Json::array({{{"version", version}, {"start", 0}, {"end", end}}});
}

void Sglang::send_wrong(const Connection& to, const Generation& generation, const Fault& fault) {
  const auto begin = generation.tokens.end() - static_cast<std::ptrdiff_t>(generation.drawn);
  const std::vector<int32_t> before(begin, generation.tokens.end());
  std::vector<int32_t> ids = before;
  ids.push_back(3);
  const std::string& kind = fault.kind;
  Json event = event_of(generation, ids, fault);
  Json& meta = event["meta_info"];
  const Json length = {{"type", "length"}, {"length", ids.size()}};
  if (kind == "wrong_count") {
    meta["output_token_logprobs"].erase(0);
  } else if (kind == "other_id") {
    meta["output_token_logprobs"].back()[1] = 4;
  } else if (kind == "nan") {
    meta["output_token_logprobs"].back()[0] = nullptr;
  } else if (kind == "positive") {
    meta["output_token_logprobs"].back()[0] = 0.5;
  } else if (kind == "fewer") {
    event = event_of(generation, {}, fault);
  } else if (kind == "changed") {
    ids.front() = ids.front() == 3 ? 4 : 3;
    event = event_of(generation, ids, fault);
  } else if (kind == "outside") {
    ids.back() = 1 << 24;
    event = event_of(generation, ids, fault);
  } else if (kind == "too_many") {
    ids.resize(before.size() + static_cast<size_t>(generation.most) + 1, 3);
    event = event_of(generation, ids, fault);
  } else if (kind == "short_spans") {
    meta["weight_versions"] = whole_span(meta["weight_version"], 1), meta["finish_reason"] = length;
    if (ids.size() == 1) meta["weight_versions"] = Json::array();
  } else if (kind == "wrong_version") {
    meta["weight_version"] = "1000000";
    meta["weight_versions"] = whole_span("1000000", ids.size());
  } else if (kind == "wrong_name") {
    meta["weight_version"] = "somebody else's";
  } else if (kind == "early_end") {
    event = event_of(generation, before, fault);
    event["meta_info"]["finish_reason"] = length;
    to.event(event.dump());
    return to.end_events();
  } else if (kind == "twice") {
    Json end = event_of(generation, before, fault);
    end["meta_info"]["finish_reason"] = length;
    to.event(end.dump());
  } else if (kind == "of_several") {
    event["index"] = 1;
  } else if (kind == "bare") {
    event.erase("meta_info");
  } else if (kind == "let_go") {
    event = event_of(generation, before, fault);
    event["meta_info"]["finish_reason"] = {{"type", "abort"}, {"message", "Aborted"}};
    to.event(event.dump());
    return to.end_events();
  } else {
    return;
  }
  to.event(event.dump());
}

}  // namespace
}  // namespace faults

int main(int argc, char** argv) {
  try {
    return faults::run<faults::Sglang>(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "faulty_sglang: %s\n", error.what());
    return 1;
  }
}
