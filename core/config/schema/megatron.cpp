#include "core/config/schema/megatron.hpp"

namespace hexad::config {
namespace {

void add_layout(Schema& s) {
  megatron_key(s, "tensor_model_parallel_size", kInt, "1", "ranks that share each layer").at_least(1);
  megatron_key(s, "pipeline_model_parallel_size", kInt, "1", "ranks that share the layers").at_least(1);
  megatron_key(s, "context_parallel_size", kInt, "1", "ranks that share each sequence (needs sequence_packing)")
      .at_least(1);
  megatron_key(s, "expert_model_parallel_size", kInt, "1", "ranks that share the experts").at_least(1);
  megatron_key(s, "expert_tensor_parallel_size", kInt, "1", "ranks that share each expert").at_least(1);
  megatron_key(s, "rank_order", kText, "tp-cp-ep-dp-pp",
               "dimensions from the one whose ranks are neighbours to the outermost (Megatron's `order`)");
  megatron_key(s, "sequence_parallel", kBool, "false", "share norms along the sequence, with tensor parallelism");
  megatron_key(s, "tp_comm_overlap", kBool, "false", "overlap tensor-parallel communication with matrix products");
  megatron_key(s, "use_gloo_process_groups", kBool, "false", "make Gloo groups too")
      .accepted("groups on the host are made where they are needed");
}

void add_pipeline(Schema& s) {
  megatron_key(s, "num_layers_in_first_pipeline_stage", kInt | kNull, "null", "an uneven pipeline").at_least(0);
  megatron_key(s, "num_layers_in_last_pipeline_stage", kInt | kNull, "null", "an uneven pipeline").at_least(0);
  megatron_key(s, "account_for_embedding_in_pipeline_split", kBool, "false",
               "the embedding counts as a layer of the first stage");
  megatron_key(s, "account_for_loss_in_pipeline_split", kBool, "false", "the head counts as a layer of the last stage");
  megatron_key(s, "pipeline_model_parallel_layout", kText | kList | kNull, "null",
               "what each stage holds: text such as `Et*3|(tt|)*6,L` (E embedding, t layer, L loss), or a list of "
               "stages, each a list of embedding, decoder, loss");
  megatron_key(s, "virtual_pipeline_model_parallel_size", kInt | kNull, "null",
               "model chunks of a rank: the interleaved schedule")
      .at_least(1);
  megatron_key(s, "num_layers_per_virtual_pipeline_stage", kInt | kNull, "null",
               "the same, said by the layers of a chunk")
      .at_least(1);
  megatron_key(s, "microbatch_group_size_per_vp_stage", kInt | kNull, "null",
               "interleaved: micro-batches in a row on one chunk; null: the pipeline size")
      .at_least(1);
  megatron_key(s, "overlap_p2p_comm", kBool | kNull, "null",
               "overlap what stages send with computation; null: where the schedule is interleaved");
  megatron_key(s, "batch_p2p_comm", kBool | kNull, "null",
               "send and receive in one batch; null: where overlap_p2p_comm is off");
  megatron_key(s, "pipeline_dtype", kText | kNull, "${policy.precision}", "type of what pipeline stages send")
      .one_of({"bfloat16", "float16", "float32"})
      .accepted("stages send the residual stream, which is float32");
}

void add_context(Schema& s) {
  megatron_key(s, "cp_comm_type", kText | kList, "p2p",
               "how context-parallel ranks exchange keys and values: p2p, all_gather, a2a, a2a+p2p, or a list with one "
               "for each layer")
      .elements(kText);
  megatron_key(s, "hierarchical_context_parallel_sizes", kList | kNull, "null",
               "a2a+p2p: sizes of the inner and the outer exchange, whose product is context_parallel_size")
      .elements(kInt);
}

void add_megatron_lora(Schema& s) {
  s.section("policy.megatron_cfg.peft", "low-rank adapters").unavailable("LoRA", {});
  megatron_key(s, "peft.enabled", kBool, "false", "train adapters only").unavailable("LoRA");
  megatron_key(s, "peft.target_modules", kList, "[]", "modules").elements(kText);
  megatron_key(s, "peft.exclude_modules", kList, "[]", "modules left out").elements(kText);
  megatron_key(s, "peft.dim", kInt, "8", "rank").at_least(1);
  megatron_key(s, "peft.alpha", kFloat, "32", "scale is alpha / dim");
  megatron_key(s, "peft.dropout", kFloat, "0.0", "dropout").at_least(0).at_most(1);
  megatron_key(s, "peft.dropout_position", kText, "post", "before or after the adapter").one_of({"pre", "post"});
  megatron_key(s, "peft.lora_A_init_method", kText, "xavier", "initialisation of A");
  megatron_key(s, "peft.lora_B_init_method", kText, "zero", "initialisation of B");
  megatron_key(s, "peft.a2a_experimental", kBool, "false", "all-to-all");
  megatron_key(s, "peft.lora_dtype", kText | kNull, "None", "type of the adapters");
}

}  // namespace

Schema::Entry megatron_key(Schema& s, const std::string& name, Kinds kinds, const char* value, const char* meaning) {
  return s.add("policy.megatron_cfg." + name, kinds, value, meaning).not_filled();
}

void add_megatron(Schema& s) {
  s.section("policy.megatron_cfg", "the megatron backend", kMap | kNull);
  megatron_key(s, "enabled", kBool, "false", "train with the plugin megatron (not with dtensor_cfg.enabled)");
  add_layout(s);
  add_pipeline(s);
  add_context(s);
  add_megatron_model(s);
  add_megatron_experts(s);
  add_megatron_computation(s);
  add_megatron_lora(s);
  add_megatron_training(s);
}

}  // namespace hexad::config
