// What an OpenAI-compatible server is asked before it gets requests: which models it has, and one short sample in each
// form of requests until it takes one.
#pragma once
#include <array>
#include <cstddef>

#include "plugins/openai_bridge/protocol/request_body.hpp"
#include "plugins/server_bridge/dialect.hpp"

namespace hexad::openai {

inline constexpr const char* kModels = "/v1/models";
inline constexpr const char* kCompletions = "/v1/completions";

bridge::Verdict read_models(const bridge::Answer& answer, bridge::Facts& facts);

using ReadForm = bridge::Verdict (*)(const bridge::Answer& answer, bridge::Facts& facts);
// For each of kForms: a server that answers has this one, and what it said is facts.sample; else that is why it has
// not.
extern const std::array<ReadForm, std::size(kForms)> kReadForms;

}  // namespace hexad::openai
