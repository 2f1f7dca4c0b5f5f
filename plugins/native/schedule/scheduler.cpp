#include "plugins/native/schedule/scheduler.hpp"

#include <algorithm>

namespace hexad::native {

Scheduler::Scheduler(const SchedulerOptions& options) : options_(options), pool_(options.num_blocks), prompts_(pool_) {}

void Scheduler::add(Sequence* sequence) { waiting_.emplace(sequence->arrival, sequence); }

void Scheduler::remove(Sequence* sequence) {
  pool_.release(sequence->blocks);
  sequence->computed = 0;
  waiting_.erase(sequence->arrival);
  running_.erase(sequence->arrival);
}

Step Scheduler::schedule() {
  for (;;) {
    Step step;
    int64_t budget = options_.max_tokens;
    schedule_decodes(step, budget);
    schedule_prefills(step, budget);
    admit(step, budget);
    for (Chunk& chunk : step.chunks) join_followers(chunk);
    if (!step.empty() || !anyone_pending()) return step;
    // Half-computed prompts hold all blocks: the last to arrive gives way.
    preempt(*running_.rbegin()->second);
  }
}

bool Scheduler::anyone_pending() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& item) { return item.second->pending() > 0; });
}

void Scheduler::schedule_decodes(Step& step, int64_t& budget) {
  for (auto it = running_.begin(); it != running_.end() && budget > 0;) {
    Sequence& sequence = *it->second;
    if (sequence.pending() != 1) {
      ++it;
      continue;
    }
    bool kept = true;
    while (kept && !reserve(sequence, 1, step)) {
      Sequence& victim = *running_.rbegin()->second;
      kept = &victim != &sequence;
      preempt(victim);
    }
    if (!kept) break;  // it was the last one
    add_chunk(step, budget, sequence, 1);
    ++it;
  }
}

void Scheduler::schedule_prefills(Step& step, int64_t& budget) {
  for (auto& [arrival, sequence] : running_) {
    if (budget <= 0) return;
    if (sequence->pending() <= 1) continue;
    int64_t count = sequence->pending();
    if (options_.chunked_prefill) {
      count = std::min(count, budget);
    } else if (count > budget && !step.empty()) {
      continue;
    }
    // A prompt never preempts: it takes what is there, and waits for the rest.
    while (count > 0 && !reserve(*sequence, count, step)) count = options_.chunked_prefill ? count / 2 : 0;
    if (count > 0) add_chunk(step, budget, *sequence, count);
  }
}

void Scheduler::admit(Step& step, int64_t& budget) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (budget <= 0 || static_cast<int64_t>(running_.size()) >= options_.max_sequences) return;
    Sequence& sequence = *it->second;
    if (sequence.pending() == 0) {  // preempted with its last token on its way
      ++it;
      continue;
    }
    if (options_.share_prompts && !start_from_shared_prompt(sequence) && being_computed(sequence)) {
      ++it;  // joins when the prompt is done
      continue;
    }
    const int64_t reserve_blocks = running_.empty() ? 0 : std::max<int64_t>(1, pool_.size() / 100);
    const bool fits =
        blocks_needed(sequence, sequence.pending()) + reserve_blocks <= pool_.free() + prompts_.freeable();
    const int64_t count = options_.chunked_prefill ? std::min(sequence.pending(), budget) : sequence.pending();
    const bool in_budget = count <= budget || step.empty();
    if ((!fits && !running_.empty()) || !in_budget || !reserve(sequence, count, step)) {
      pool_.release(sequence.blocks);
      sequence.computed = 0;
      return;  // first come, first served: nobody overtakes it
    }
    running_.emplace(sequence.arrival, &sequence);
    waiting_.erase(it);
    add_chunk(step, budget, sequence, count);
    it = waiting_.begin();  // followers may have left the queue
  }
}

bool Scheduler::start_from_shared_prompt(Sequence& sequence) {
  const std::vector<int32_t>* shared = prompts_.find(sequence.request.group, sequence.request.prompt);
  if (!shared) return false;
  sequence.blocks = *shared;
  for (const int32_t block : sequence.blocks) pool_.share(block);
  // The last known token is always run: its logits are what the next one is drawn from.
  sequence.computed = std::min(sequence.prompt_size(), sequence.size() - 1);
  return true;
}

bool Scheduler::being_computed(const Sequence& sequence) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& item) {
    const Sequence& other = *item.second;
    return other.shareable && other.computed < other.prompt_size() && other.request.group == sequence.request.group &&
           other.request.prompt == sequence.request.prompt;
  });
}

void Scheduler::add_chunk(Step& step, int64_t& budget, Sequence& sequence, int64_t count) {
  Chunk chunk{&sequence, sequence.computed, count, {}};
  if (count == sequence.pending()) chunk.samplers.push_back(&sequence);
  budget -= count;
  step.chunks.push_back(std::move(chunk));
}

void Scheduler::join_followers(Chunk& chunk) {
  Sequence& leader = *chunk.sequence;
  const bool finishes_prompt = !chunk.samplers.empty() && leader.sampled() == 0;
  if (!options_.share_prompts || !leader.shareable || !finishes_prompt) return;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (static_cast<int64_t>(running_.size()) >= options_.max_sequences) return;
    Sequence& follower = *it->second;
    const bool same = follower.sampled() == 0 && follower.request.group == leader.request.group &&
                      follower.request.prompt == leader.request.prompt;
    if (!same) {
      ++it;
      continue;
    }
    follower.blocks = leader.blocks;
    for (const int32_t block : follower.blocks) pool_.share(block);
    chunk.samplers.push_back(&follower);
    running_.emplace(follower.arrival, &follower);
    it = waiting_.erase(it);
  }
}

void Scheduler::commit(const Step& step) {
  for (const Chunk& chunk : step.chunks) {
    Sequence& sequence = *chunk.sequence;
    const bool finished_prompt =
        chunk.start < sequence.prompt_size() && chunk.start + chunk.count >= sequence.prompt_size();
    sequence.computed = chunk.start + chunk.count;
    for (Sequence* sampler : chunk.samplers) sampler->computed = sequence.computed;
    if (options_.share_prompts && sequence.shareable && finished_prompt) {
      const std::span<const int32_t> blocks(sequence.blocks.data(), blocks_for(sequence.prompt_size()));
      prompts_.insert(sequence.request.group, sequence.request.prompt, blocks);
    }
  }
}

int64_t Scheduler::blocks_needed(const Sequence& sequence, int64_t count) const {
  const int64_t have = static_cast<int64_t>(sequence.blocks.size());
  int64_t needed = std::max<int64_t>(0, blocks_for(sequence.computed + count) - have);
  for (int64_t i = sequence.computed / options_.block_size; i < have; ++i) {
    needed += pool_.references(sequence.blocks[i]) > 1;
  }
  return needed;
}

bool Scheduler::reserve(Sequence& sequence, int64_t count, Step& step) {
  // Dropping a prompt may also end the sharing of a block, and with it the need to copy: count again each time.
  while (pool_.free() < blocks_needed(sequence, count)) {
    if (!prompts_.drop_one()) return false;
  }
  const int64_t have = static_cast<int64_t>(sequence.blocks.size());
  for (int64_t i = sequence.computed / options_.block_size; i < have; ++i) {
    int32_t& block = sequence.blocks[i];
    if (pool_.references(block) == 1) continue;
    const int32_t copy = pool_.allocate();
    step.copies.push_back({block, copy});
    pool_.release(block);
    block = copy;
  }
  while (static_cast<int64_t>(sequence.blocks.size()) < blocks_for(sequence.computed + count)) {
    sequence.blocks.push_back(pool_.allocate());
  }
  return true;
}

void Scheduler::preempt(Sequence& sequence) {
  pool_.release(sequence.blocks);
  sequence.computed = 0;
  sequence.shareable = true;
  ++sequence.preemptions;
  running_.erase(sequence.arrival);
  waiting_.emplace(sequence.arrival, &sequence);
}

void Scheduler::flush_prompts() {
  prompts_.clear();
  for (auto& [arrival, sequence] : running_) sequence->shareable = false;
}

void Scheduler::preempt_all() {
  while (!running_.empty()) preempt(*running_.rbegin()->second);
  prompts_.clear();
}

}  // namespace hexad::native
