#include "plugins/native/engine.hpp"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "plugins/native/device_scope.hpp"
#include "plugins/native/parallel/turn.hpp"

namespace hexad::native {
namespace {

std::string text_of_failure(const std::string& replica, const std::string& reason) {
  return fmt::format(
      "a pass of the model failed on one rank of {}, and the others cannot tell: {}; restart the generator, with less "
      "in a pass (max_num_seqs, max_num_batched_tokens) if it was out of memory",
      replica, reason);
}

}  // namespace

Engine::Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, KvCache cache, bool has_weights)
    : options_(options),
      executor_(std::move(executor)),
      cache_(std::move(cache)),
      scheduler_(options.schedule),
      has_weights_(has_weights) {}

std::string Engine::why_never(const Sequence& sequence) const {
  const int64_t prompt = sequence.prompt_size();
  if (prompt >= options_.max_length) {
    return fmt::format(
        "the prompt has {} tokens, and prompt and response together may have {} (max_total_sequence_length)", prompt,
        options_.max_length);
  }
  // The last token is drawn and never run.
  const int64_t longest = prompt + std::min(sequence.request.max_new_tokens, options_.max_length - prompt) - 1;
  const int64_t needed = scheduler_.blocks_for(longest), there = scheduler_.pool().size();
  if (needed <= there) return {};
  return fmt::format(
      "prompt and response need {} blocks of the KV cache ({} tokens), and it has {} ({} tokens): raise "
      "native_cfg.kv_cache_gb or lower max_new_tokens",
      needed, longest, there, there * cache_.block_size());
}

void Engine::add(std::unique_ptr<Sequence> sequence) {
  sequence->arrival = arrivals_++;
  digest_ = mixed(digest_, digest_of(sequence->request));
  if (std::string reason = why_never(*sequence); !reason.empty()) {
    events_.push_back(make_event(*sequence, HEXAD_FINISH_ERROR, std::move(reason)));
    return;
  }
  const int64_t most = options_.max_length - sequence->prompt_size();
  sequence->limit = sequence->prompt_size() + std::min(sequence->request.max_new_tokens, most);
  scheduler_.add(sequence.get());
  sequences_[sequence->request.id] = std::move(sequence);
}

void Engine::cancel(uint64_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) finish(*found->second, HEXAD_FINISH_ABORT);
}

Sequence* Engine::find(uint64_t id, uint64_t arrival) const {
  const auto found = sequences_.find(id);  // ids come again, arrivals do not
  return found != sequences_.end() && found->second->arrival == arrival ? found->second.get() : nullptr;
}

void Engine::make_cache() {
  const c10::InferenceMode inference;
  cache_.allocate();
}

void Engine::step(const sdk::Detokenize& detokenize) {
  const c10::InferenceMode inference;
  cache_.allocate();
  for (const Pass& pass : std::exchange(fetched_, {})) take_in(pass, detokenize);
  const Step step = scheduler_.schedule();
  if (!step.empty()) start_pass(step);
  const bool full = static_cast<int64_t>(in_flight_.size()) >= executor_->passes_in_flight();
  if (in_flight_.empty() || (!full && !step.empty())) return;
  Pass pass = std::move(in_flight_.front());
  in_flight_.pop_front();
  fetch(pass);
  take_in(pass, detokenize);
}

void Engine::start_pass(const Step& step) {
  Pass pass{{}, version_, {}, {}};
  for (const Chunk& chunk : step.chunks)
    for (const Sequence* sampler : chunk.samplers) pass.drawers.push_back({sampler->request.id, sampler->arrival});
  try {
    executor_->start(step, cache_);
  } catch (const c10::DistError&) {
    throw;
  } catch (const std::exception& error) {
    lose_replica(error);
    scheduler_.commit(step);
    scheduler_.flush_prompts();
    std::vector<uint64_t> ids;
    for (const Chunk& chunk : step.chunks) {
      ids.push_back(chunk.sequence->request.id);
      for (const Sequence* sampler : chunk.samplers) ids.push_back(sampler->request.id);
    }
    for (const uint64_t id : ids) {
      const auto found = sequences_.find(id);
      if (found != sequences_.end()) finish(*found->second, HEXAD_FINISH_ERROR, text_of(error));
    }
    return;
  }
  scheduler_.commit(step);
  int32_t draw = 0;
  for (const Chunk& chunk : step.chunks) {
    collect_routes(*chunk.sequence, cache_);
    for (Sequence* sampler : chunk.samplers) {
      collect_routes(*sampler, cache_);
      sampler->tokens.push_back(~draw++);
    }
  }
  in_flight_.push_back(std::move(pass));
}

// The others have this pass's sums under way: the next ones here would meet them.
void Engine::lose_replica(const std::exception& error) const {
  if (options_.replica.empty()) return;
  throw c10::DistBackendError({__func__, __FILE__, __LINE__}, text_of_failure(options_.replica, text_of(error)));
}

void Engine::fetch(Pass& pass) {
  try {
    pass.draws = executor_->finish();
  } catch (const c10::DistError&) {
    throw;
  } catch (const std::exception& error) {
    lose_replica(error);
    pass.failure = text_of(error);
  }
}

void Engine::drain() {
  while (!in_flight_.empty()) {
    Pass pass = std::move(in_flight_.front());
    in_flight_.pop_front();
    fetch(pass);
    fetched_.push_back(std::move(pass));
  }
}

void Engine::take_in(const Pass& pass, const sdk::Detokenize& detokenize) {
  for (size_t i = 0; i < pass.drawers.size(); ++i) {
    Sequence* sequence = find(pass.drawers[i].id, pass.drawers[i].arrival);
    if (!sequence) continue;  // it ended while it was in the pass
    if (pass.failure.empty()) {
      accept(*sequence, pass.draws[i], pass.version, detokenize);
    } else {
      finish(*sequence, HEXAD_FINISH_ERROR, pass.failure);
    }
  }
}

void Engine::accept(Sequence& sequence, const Draw& draw, int64_t version, const sdk::Detokenize& detokenize) {
  const int64_t position = sequence.known();
  digest_ = mixed(digest_, (sequence.request.id << 20) ^ static_cast<uint32_t>(draw.token));
  if (draw.token < 0) {
    return finish(sequence, HEXAD_FINISH_ERROR,
                  fmt::format("the logits at position {} are not finite: nan or inf in the weights (version {})",
                              position, version));
  }
  if (sequence.spans.empty() || sequence.spans.back().version != version) {
    sequence.spans.push_back({position - sequence.prompt_size(), version});
  }
  sequence.tokens[position] = draw.token;
  sequence.logprobs.push_back(draw.logprob);
  const Request& request = sequence.request;
  const auto is_in = [&](const auto& ids) { return std::find(ids.begin(), ids.end(), draw.token) != ids.end(); };
  if ((!request.ignore_eos && is_in(options_.eos)) || is_in(request.stop_token_ids)) {
    return finish(sequence, HEXAD_FINISH_STOP);
  }
  try {
    const auto known = std::span(std::as_const(sequence.tokens)).first(static_cast<size_t>(sequence.known()));
    if (sdk::ends_at_stop_string(known, sequence.known() - sequence.prompt_size(), request.stop_strings, detokenize))
      return finish(sequence, HEXAD_FINISH_STOP);
  } catch (const std::exception& error) {
    return finish(sequence, HEXAD_FINISH_ERROR,
                  fmt::format("its stop strings need the text of its tokens: {}", error.what()));
  }
  if (sequence.known() >= sequence.limit) finish(sequence, HEXAD_FINISH_LENGTH);
}

void Engine::finish(Sequence& sequence, int32_t reason, std::string error) {
  digest_ = mixed(digest_, (sequence.request.id << 20) ^ static_cast<uint32_t>(reason));  // it leaves the passes
  events_.push_back(make_event(sequence, reason, std::move(error)));
  if (reason != HEXAD_FINISH_ERROR) add_routes(*events_.back(), sequence, cache_);
  preemptions_ += sequence.preemptions;
  scheduler_.remove(&sequence);
  sequences_.erase(sequence.request.id);
}

std::vector<std::unique_ptr<Event>> Engine::take_events() {
  for (auto& [id, sequence] : sequences_) {
    const auto known = static_cast<int64_t>(sequence->logprobs.size());
    if (!sequence->request.stream || known == sequence->reported) continue;
    sequence->reported = known;
    events_.push_back(make_event(*sequence, HEXAD_FINISH_NONE));
  }
  return std::exchange(events_, {});
}

void Engine::set_weights(WeightMap weights, int64_t version) {
  drain();
  has_weights_ = false;
  executor_->set_weights(std::move(weights));
  has_weights_ = true;
  version_ = version;
  scheduler_.flush_prompts();
}

void Engine::sleep(bool weights_too) {
  awake_ = false;
  drain();
  scheduler_.preempt_all();
  cache_.release();
  if (weights_too) drop_weights();
}

void Engine::drop_weights() {
  drain();
  has_weights_ = false;
  executor_->set_weights({});
}

void Engine::wake() { awake_ = true; }

}  // namespace hexad::native
