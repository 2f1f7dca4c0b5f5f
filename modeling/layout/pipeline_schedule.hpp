// What every pipeline rank does in one step, event by event: 1F1B, interleaved 1F1B, forward only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "modeling/layout/pipeline_event.hpp"

namespace hexad::modeling::layout {

// Behind each option: Megatron-Core's name for it.
struct PipelineOptions {
  int64_t ranks = 1;                   // pipeline_model_parallel_size
  std::optional<int64_t> chunks = {};  // virtual_pipeline_model_parallel_size; absent: one, not interleaved
  int64_t microbatches = 1;            // num_microbatches, per data-parallel rank
  std::optional<int64_t> group = {};   // microbatch_group_size_per_vp_stage; absent: `ranks`
  bool forward_only = false;           // log-probs
  bool overlap = false;                // overlap_p2p_comm: exchanges are waited for only where their data is used
  bool prefetch = false;               // overlap_p2p_comm_warmup_flush: and posted before the computation
  bool sync_by_chunk = false;          // grad_sync_func and param_sync_func: reductions and gathers as events
  bool extra_warmup = false;           // overlap_moe_expert_parallel_comm: a forward and the backward after it
                                       // are independent, and may run at once
  std::optional<int64_t> partial_checkpoints = {};  // num_microbatches_with_partial_activation_checkpoints
};

// Forwards before the first backward.
struct WarmupCounts {
  int64_t total = 0, warmup = 0, remaining = 0;
  bool all_in_warmup = false;
};

// schedules.py:get_pp_rank_microbatches: PP - rank - 1 forwards; interleaved 2 (PP - rank - 1) + (chunks - 1) group;
// forward-only all.
WarmupCounts warmup_counts(const PipelineOptions& options, int64_t rank);

// schedules.py:get_schedule_table: in which order an interleaved rank runs its units forward: `group` micro-batches
// through chunk 0, then through chunk 1, ... Backwards run it with chunk c as chunks - 1 - c.
std::vector<PipelineUnit> schedule_table(const PipelineOptions& options);

// schedules.py:forward_backward_no_pipelining, forward_backward_pipelining_without_interleaving and _with_interleaving.
// Throws Error for sizes below 1, a rank outside the pipeline, and what Megatron refuses: overlap without
// interleaving, a group outside [ranks, microbatches], a last group smaller than the pipeline. A forward-only schedule
// holds gradients to its end and finalizes nothing.
PipelineSchedule pipeline_schedule(const PipelineOptions& options, int64_t rank);

}  // namespace hexad::modeling::layout
