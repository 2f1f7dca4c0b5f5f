// Given text through the generator's scheduler, paged cache and executor: instead of a drawn token, the text's own.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include <doctest/doctest.h>

#include "plugins/native/model/executor.hpp"
#include "tests/plugins/native/support/reference.hpp"

namespace native_test {

struct ForcedText {
  std::vector<int32_t> tokens;
  int64_t prompt_size = 1;
  uint64_t group = 0;
};

// Text `i`: the prompt of its group, and tokens of its own behind it.
inline ForcedText text_in_group(uint64_t i, uint64_t group, int64_t prompt, int64_t rest, int64_t vocabulary = 97) {
  ForcedText text{random_prompt(group, prompt, vocabulary), prompt, group};
  const std::vector<int32_t> own = random_prompt(100 + i, rest, vocabulary);
  text.tokens.insert(text.tokens.end(), own.begin(), own.end());
  return text;
}

// Of TinyModel, in groups of three.
inline std::vector<ForcedText> texts_in_groups(uint64_t count) {
  std::vector<ForcedText> texts;
  for (uint64_t i = 0; i < count; ++i)
    texts.push_back(text_in_group(i, i / 3, 5 + 9 * int64_t(i / 3) % 31, 10 + int64_t(i) % 25));
  return texts;
}

using MakeExecutor = std::unique_ptr<hexad::native::Executor> (*)(const hexad::modeling::ModelConfig&,
                                                                  const hexad::native::ExecutorOptions&);

// A cache that is too small for all that run.
inline hexad::native::SchedulerOptions small_schedule(int64_t block_size) {
  return {.block_size = block_size, .num_blocks = 80 / block_size, .max_sequences = 7, .max_tokens = 11};
}

struct ForcedRun {
  std::unique_ptr<hexad::native::Executor> executor;
  hexad::native::KvCache cache;
  hexad::native::Scheduler scheduler;
  // How many tokens of the text to add at once after the first draw: 1 is decoding, more is a chunk of a prompt.
  std::function<int64_t()> advance = [] { return int64_t{1}; };
  int64_t passes = 0, preemptions = 0;

  ForcedRun(std::unique_ptr<hexad::native::Executor> runs, const hexad::modeling::ModelConfig& config,
            at::ScalarType dtype, const hexad::native::SchedulerOptions& options, at::Device device = at::kCPU)
      : executor(std::move(runs)),
        cache(config, options.block_size, options.num_blocks, dtype, device, false, executor->key_layout()),
        scheduler(options) {}

  // Decoding and chunks in turn, the same each time.
  void advance_at_random() {
    advance = [rng = std::mt19937_64(3)]() mutable { return rng() % 3 ? int64_t{1} : int64_t(1 + rng() % 6); };
  }

  // For each text the log-probs of its tokens; nan for those that no logits were computed for.
  std::vector<std::vector<float>> run(const std::vector<ForcedText>& texts) {
    const c10::InferenceMode inference;
    std::vector<std::unique_ptr<hexad::native::Sequence>> sequences;
    std::vector<std::vector<float>> logprobs;
    for (size_t i = 0; i < texts.size(); ++i) {
      auto& sequence = sequences.emplace_back(std::make_unique<hexad::native::Sequence>());
      const auto begin = texts[i].tokens.begin();
      sequence->request.group = texts[i].group;
      sequence->request.id = sequence->arrival = i;
      sequence->request.prompt.assign(begin, begin + texts[i].prompt_size);
      sequence->tokens = sequence->request.prompt;
      scheduler.add(sequence.get());
      logprobs.emplace_back(texts[i].tokens.size(), std::numeric_limits<float>::quiet_NaN());
    }
    cache.allocate();
    for (; !scheduler.idle(); ++passes) {
      const hexad::native::Step step = scheduler.schedule();
      const at::Tensor rows = executor->forward(step, cache).log_softmax(-1);
      scheduler.commit(step);
      int64_t row = 0;
      for (const hexad::native::Chunk& chunk : step.chunks) {
        for (hexad::native::Sequence* sequence : chunk.samplers) {
          const std::vector<int32_t>& text = texts[sequence->request.id].tokens;
          const int32_t next = text[sequence->size()];
          logprobs[sequence->request.id][sequence->size()] = rows.const_data_ptr<float>()[row * rows.size(1) + next];
          extend(*sequence, text);
        }
        row += !chunk.samplers.empty();
      }
    }
    return logprobs;
  }

 private:
  void extend(hexad::native::Sequence& sequence, const std::vector<int32_t>& text) {
    const int64_t size = static_cast<int64_t>(text.size());
    for (int64_t i = advance(); i > 0 && sequence.size() < size; --i) sequence.tokens.push_back(text[sequence.size()]);
    if (sequence.size() < size) return;
    preemptions += sequence.preemptions;
    scheduler.remove(&sequence);
  }
};

// Of the tokens that were measured, against the full forward pass.
inline Gap gap_of(const std::vector<std::vector<float>>& got, const std::vector<ForcedText>& texts,
                  const std::function<std::vector<float>(const std::vector<int32_t>&)>& reference) {
  Gap gap;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> want = reference(texts[i].tokens);
    for (size_t t = static_cast<size_t>(texts[i].prompt_size); t < want.size(); ++t) {
      if (!std::isnan(got[i][t])) gap.add(got[i][t], want[t]);
    }
  }
  return gap;
}

}  // namespace native_test
