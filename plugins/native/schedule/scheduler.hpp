// Decides what runs in the next forward pass: continuous batching over a paged KV cache. Knows nothing of tensors.
//
// Sequences are served in the order of their arrival. Every running sequence that waits for its next token gets one
// row; what is left of the token budget goes to prompts, in chunks. When the cache is full, shared prompts that nobody
// uses are dropped first, then the sequence that arrived last is preempted: it loses its blocks, keeps its tokens, and
// is computed again when there is room.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "plugins/native/schedule/prompt_cache.hpp"
#include "plugins/native/schedule/sequence.hpp"

namespace hexad::native {

struct SchedulerOptions {
  int64_t block_size = 16;
  int64_t num_blocks = 0;
  int64_t max_sequences = 256;  // that run at once
  int64_t max_tokens = 2048;    // rows of a forward pass
  bool chunked_prefill = true;  // false: a prompt runs whole, if need be in a pass of its own
  bool share_prompts = true;
};

// Rows of a pass: tokens [start, start + count) of a sequence.
struct Chunk {
  Sequence* sequence;
  int64_t start, count;
  // Who draws a token from the logits of the last row: nobody in the middle of a prompt; the sequence; and, where it
  // has finished a prompt that others wait for, those too.
  std::vector<Sequence*> samplers;
};

struct BlockCopy {
  int32_t from, to;
};

struct Step {
  std::vector<BlockCopy> copies;  // before the pass: copy on write
  std::vector<Chunk> chunks;
  bool empty() const { return chunks.empty(); }
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  // Sequences are borrowed until remove(). Each must fit: blocks_for(its largest length) <= num_blocks.
  void add(Sequence* sequence);
  // Takes a sequence out, whatever its state, and frees its blocks. Not between schedule() and commit().
  void remove(Sequence* sequence);

  // Empty only when there is nothing to do before a token that is on its way is known. Follow with commit(), once what
  // fills the cache is at least in the device's queue.
  Step schedule();
  void commit(const Step& step);

  // Shared prompts are forgotten, also those that are being computed; running sequences go on.
  void flush_prompts();
  // Everything loses its blocks and is computed again later: the cache is going away.
  void preempt_all();

  bool idle() const { return waiting_.empty() && running_.empty(); }
  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  int64_t blocks_for(int64_t tokens) const { return (tokens + options_.block_size - 1) / options_.block_size; }
  const BlockPool& pool() const { return pool_; }
  const SchedulerOptions& options() const { return options_; }

 private:
  using Queue = std::map<uint64_t, Sequence*>;  // by arrival

  bool anyone_pending() const;
  void schedule_decodes(Step& step, int64_t& budget);
  void schedule_prefills(Step& step, int64_t& budget);
  void admit(Step& step, int64_t& budget);
  bool start_from_shared_prompt(Sequence& sequence);
  bool being_computed(const Sequence& sequence) const;
  void add_chunk(Step& step, int64_t& budget, Sequence& sequence, int64_t count);
  // Sequences that wait for the prompt that this chunk finishes start from it: after everything else is decided,
  // because they must not be preempted before they have drawn.
  void join_followers(Chunk& chunk);

  // Blocks to allocate before tokens [computed, computed + count) can be written, copies on write included.
  int64_t blocks_needed(const Sequence& sequence, int64_t count) const;
  // Allocates them, dropping shared prompts if it must; false (and nothing allocated) if there are not enough.
  bool reserve(Sequence& sequence, int64_t count, Step& step);
  void preempt(Sequence& sequence);

  SchedulerOptions options_;
  BlockPool pool_;
  PromptCache prompts_;
  Queue waiting_, running_;
};

}  // namespace hexad::native
