#include "plugins/native/engine.hpp"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "plugins/native/cpu/parallel.hpp"
#include "plugins/native/device_scope.hpp"
#include "plugins/native/sample/philox.hpp"
#include "plugins/native/sample/sampler.hpp"

namespace hexad::native {

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
  if (std::string reason = why_never(*sequence); !reason.empty()) {
    events_.push_back(make_event(*sequence, HEXAD_FINISH_ERROR, std::move(reason)));
    return;
  }
  scheduler_.add(sequence.get());
  sequences_[sequence->request.id] = std::move(sequence);
}

void Engine::cancel(uint64_t id) {
  const auto found = sequences_.find(id);
  if (found != sequences_.end()) finish(*found->second, HEXAD_FINISH_ABORT);
}

void Engine::step(const Detokenize& detokenize) {
  const c10::InferenceMode inference;
  cache_.allocate();
  const Step step = scheduler_.schedule();
  if (step.empty()) return;
  try {
    cache_.copy(step.copies);
    const at::Tensor logits = executor_->forward(step, cache_);
    scheduler_.commit(step);
    for (const Chunk& chunk : step.chunks) {
      collect_routes(*chunk.sequence, cache_);
      for (Sequence* sampler : chunk.samplers) collect_routes(*sampler, cache_);
    }
    draw_tokens(step, logits, detokenize);
  } catch (const std::exception& error) {
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
  }
}

void Engine::draw_tokens(const Step& step, const at::Tensor& logits, const Detokenize& detokenize) {
  struct Wanted {
    Sequence* sequence;
    const float* row;
    Draw draw;
  };
  std::vector<Wanted> wanted;
  const int64_t vocab = logits.size(1);
  const float* row = logits.const_data_ptr<float>();
  for (const Chunk& chunk : step.chunks) {
    for (Sequence* sampler : chunk.samplers) wanted.push_back({sampler, row, {}});
    row += chunk.samplers.empty() ? 0 : vocab;
  }
  cpu::parallel_for(static_cast<int64_t>(wanted.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Sequence& sequence = *wanted[i].sequence;
      const double u = uniform(sequence.request.seed, static_cast<uint64_t>(sequence.size()));
      wanted[i].draw = draw(wanted[i].row, vocab, sequence.request.sampling, u);
    }
  });
  for (const Wanted& item : wanted) accept(*item.sequence, item.draw.token, item.draw.logprob, detokenize);
}

void Engine::accept(Sequence& sequence, int32_t token, float logprob, const Detokenize& detokenize) {
  if (token < 0) {
    return finish(sequence, HEXAD_FINISH_ERROR,
                  fmt::format("the logits at position {} are not finite: nan or inf in the weights (version {})",
                              sequence.size(), version_));
  }
  if (sequence.spans.empty() || sequence.spans.back().version != version_) {
    sequence.spans.push_back({sequence.sampled(), version_});
  }
  sequence.tokens.push_back(token);
  sequence.logprobs.push_back(logprob);
  const Request& request = sequence.request;
  const auto is_in = [&](const auto& ids) { return std::find(ids.begin(), ids.end(), token) != ids.end(); };
  if ((!request.ignore_eos && is_in(options_.eos)) || is_in(request.stop_token_ids)) {
    return finish(sequence, HEXAD_FINISH_STOP);
  }
  try {
    if (stops_at_text(sequence, detokenize)) return finish(sequence, HEXAD_FINISH_STOP);
  } catch (const std::exception& error) {
    return finish(sequence, HEXAD_FINISH_ERROR,
                  fmt::format("its stop strings need the text of its tokens: {}", error.what()));
  }
  if (sequence.sampled() >= request.max_new_tokens || sequence.size() >= options_.max_length) {
    return finish(sequence, HEXAD_FINISH_LENGTH);
  }
}

void Engine::finish(Sequence& sequence, int32_t reason, std::string error) {
  events_.push_back(make_event(sequence, reason, std::move(error)));
  if (reason != HEXAD_FINISH_ERROR) add_routes(*events_.back(), sequence, cache_);
  preemptions_ += sequence.preemptions;
  scheduler_.remove(&sequence);
  sequences_.erase(sequence.request.id);
}

std::vector<std::unique_ptr<Event>> Engine::take_events() {
  for (auto& [id, sequence] : sequences_) {
    if (!sequence->request.stream || sequence->sampled() == sequence->reported) continue;
    sequence->reported = sequence->sampled();
    events_.push_back(make_event(*sequence, HEXAD_FINISH_NONE));
  }
  return std::exchange(events_, {});
}

void Engine::set_weights(WeightMap weights, int64_t version) {
  executor_->set_weights(std::move(weights));
  has_weights_ = true;
  version_ = version;
  scheduler_.flush_prompts();
}

void Engine::sleep(bool weights_too) {
  awake_ = false;
  scheduler_.preempt_all();
  cache_.release();
  if (!weights_too) return;
  executor_->set_weights({});
  has_weights_ = false;
}

void Engine::wake() { awake_ = true; }

}  // namespace hexad::native
