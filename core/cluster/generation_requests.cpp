#include "core/cluster/generation_requests.hpp"

#include <algorithm>

#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

// The one number of a request in a column.
int64_t number_of(const data::Batch& prompts, const char* column, int64_t request) {
  const auto row = prompts.row<int64_t>(column, request);
  if (row.size() != 1)
    fail(ErrorKind::worker, "request {}: column '{}' holds {} numbers, wanted one", request, column, row.size());
  return row[0];
}

}  // namespace

std::unique_ptr<Requests> make_requests(const protocol::Prompts& of) {
  const auto& [prompts, sampling, reports] = of;
  auto result = std::make_unique<Requests>();
  for (const int64_t id : sampling.stop_token_ids) {
    if (!std::in_range<int32_t>(id)) fail(ErrorKind::data, "stop_token_ids: got {}, wanted 32 bits", id);
    result->stop_token_ids.push_back(static_cast<int32_t>(id));
  }
  result->stop_strings = sampling.stop_strings;
  for (const std::string& text : result->stop_strings) result->stop_pointers.push_back(text.c_str());
  const bool named = prompts.has("id");
  for (int64_t i = 0; i < prompts.size(); ++i) {
    const auto tokens = prompts.row<int32_t>("tokens", i);
    hexad_request request{};
    request.struct_size = HEXAD_STRUCT_SIZE(hexad_request, num_stop_strings);
    request.flags = (sampling.ignore_eos ? HEXAD_REQUEST_IGNORE_EOS : 0) | (sampling.greedy ? HEXAD_REQUEST_GREEDY : 0);
    request.id = static_cast<uint64_t>(named ? number_of(prompts, "id", i) : i);
    request.group = static_cast<uint64_t>(number_of(prompts, "group", i));
    request.prompt = tokens.data();
    request.prompt_size = static_cast<int64_t>(tokens.size());
    request.max_new_tokens = number_of(prompts, "max_new_tokens", i);
    request.seed = static_cast<uint64_t>(number_of(prompts, "seed", i));
    request.temperature = sampling.temperature;
    request.top_p = sampling.top_p;
    request.min_p = sampling.min_p;
    request.top_k = sampling.top_k;
    request.stop_token_ids = result->stop_token_ids.data();
    request.num_stop_token_ids = static_cast<int64_t>(result->stop_token_ids.size());
    request.stop_strings = result->stop_pointers.data();
    request.num_stop_strings = static_cast<int64_t>(result->stop_pointers.size());
    result->requests.push_back(request);
  }
  for (const hexad_request& request : result->requests) result->pointers.push_back(&request);
  return result;
}

Completion completion_of(const hexad_completion& event) {
  Completion completion{{event.tokens, event.tokens + event.count},
                        {event.logprobs, event.logprobs + event.count},
                        std::vector<int32_t>(static_cast<size_t>(event.count), 0),
                        event.finish,
                        event.num_spans > 0 ? event.spans[0].version : 0};
  for (int64_t i = 0; i < event.num_spans; ++i) {
    const auto begin = completion.versions.begin() + std::min(event.spans[i].start, event.count);
    std::fill(begin, completion.versions.end(), static_cast<int32_t>(event.spans[i].version));
  }
  return completion;
}

data::Batch to_batch(const std::vector<Completion>& completions) {
  std::vector<int64_t> lengths, versions;
  std::vector<int32_t> tokens, finish, token_versions;
  std::vector<float> logprobs;
  for (const Completion& completion : completions) {
    lengths.push_back(static_cast<int64_t>(completion.tokens.size()));
    versions.push_back(completion.version);
    finish.push_back(completion.finish);
    tokens.insert(tokens.end(), completion.tokens.begin(), completion.tokens.end());
    logprobs.insert(logprobs.end(), completion.logprobs.begin(), completion.logprobs.end());
    token_versions.insert(token_versions.end(), completion.versions.begin(), completion.versions.end());
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("tokens", data::Tensor::of(tokens), data::Axis::token);
  batch.set("logprobs", data::Tensor::of(logprobs), data::Axis::token);
  batch.set("weight_versions", data::Tensor::of(token_versions), data::Axis::token);
  batch.set("finish", data::Tensor::of(finish), data::Axis::sample);
  batch.set("weight_version", data::Tensor::of(versions), data::Axis::sample);
  return batch;
}

}  // namespace hexad::cluster
