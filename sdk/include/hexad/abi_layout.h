/* Where every field of the ABI lies, x86-64 and aarch64. Generated from sdk/abi/v1.json by check_layout.py --update. */
/* clang-format off */
#ifndef HEXAD_ABI_LAYOUT_H_
#define HEXAD_ABI_LAYOUT_H_

#include <hexad/abi.h>

#ifndef __LP64__
#error "the Hexad ABI is for LP64 machines: 64-bit long and pointers"
#endif
#ifdef __cplusplus
#define HEXAD_ASSERT_(condition, text) static_assert(condition, text)
#else
#define HEXAD_ASSERT_(condition, text) _Static_assert(condition, text)
#endif
#define HEXAD_FIELD_(type, field, offset, size)                                                       \
  HEXAD_ASSERT_(offsetof(type, field) == (offset) && sizeof(((type*)0)->field) == (size), #type "." #field " moved")
#define HEXAD_SIZE_(type, size) HEXAD_ASSERT_(sizeof(type) == (size), #type " has another size")

HEXAD_FIELD_(hexad_named_tensor, name, 0, 8);
HEXAD_FIELD_(hexad_named_tensor, tensor, 8, 8);
HEXAD_FIELD_(hexad_named_tensor, lengths, 16, 8);
HEXAD_FIELD_(hexad_named_tensor, axis, 24, 4);
HEXAD_FIELD_(hexad_named_tensor, reserved, 28, 4);
HEXAD_SIZE_(hexad_named_tensor, 32);

HEXAD_FIELD_(hexad_tensor_spec, name, 0, 8);
HEXAD_FIELD_(hexad_tensor_spec, dtype, 8, 4);
HEXAD_FIELD_(hexad_tensor_spec, axis, 12, 4);
HEXAD_FIELD_(hexad_tensor_spec, flags, 16, 4);
HEXAD_FIELD_(hexad_tensor_spec, reserved, 20, 4);
HEXAD_SIZE_(hexad_tensor_spec, 24);

HEXAD_FIELD_(hexad_metric_spec, name, 0, 8);
HEXAD_FIELD_(hexad_metric_spec, reduce, 8, 4);
HEXAD_FIELD_(hexad_metric_spec, reserved, 12, 4);
HEXAD_SIZE_(hexad_metric_spec, 16);

HEXAD_FIELD_(hexad_batch, struct_size, 0, 4);
HEXAD_FIELD_(hexad_batch, reserved, 4, 4);
HEXAD_FIELD_(hexad_batch, num_sequences, 8, 8);
HEXAD_FIELD_(hexad_batch, num_tokens, 16, 8);
HEXAD_FIELD_(hexad_batch, cu_seqlens, 24, 8);
HEXAD_FIELD_(hexad_batch, tensors, 32, 8);
HEXAD_FIELD_(hexad_batch, num_tensors, 40, 8);
HEXAD_FIELD_(hexad_batch, padded_length, 48, 8);
HEXAD_FIELD_(hexad_batch, is_dummy, 56, 8);
HEXAD_SIZE_(hexad_batch, 64);

HEXAD_FIELD_(hexad_host, struct_size, 0, 4);
HEXAD_FIELD_(hexad_host, abi_minor, 4, 4);
HEXAD_FIELD_(hexad_host, ctx, 8, 8);
HEXAD_FIELD_(hexad_host, version, 16, 8);
HEXAD_FIELD_(hexad_host, set_error, 24, 8);
HEXAD_FIELD_(hexad_host, log_enabled, 32, 8);
HEXAD_FIELD_(hexad_host, log, 40, 8);
HEXAD_FIELD_(hexad_host, metric, 48, 8);
HEXAD_FIELD_(hexad_host, config_i64, 56, 8);
HEXAD_FIELD_(hexad_host, config_f64, 64, 8);
HEXAD_FIELD_(hexad_host, config_bool, 72, 8);
HEXAD_FIELD_(hexad_host, config_str, 80, 8);
HEXAD_FIELD_(hexad_host, config_json, 88, 8);
HEXAD_FIELD_(hexad_host, device, 96, 8);
HEXAD_FIELD_(hexad_host, stream, 104, 8);
HEXAD_FIELD_(hexad_host, cancelled, 112, 8);
HEXAD_FIELD_(hexad_host, deadline_ns, 120, 8);
HEXAD_FIELD_(hexad_host, step, 128, 8);
HEXAD_FIELD_(hexad_host, flags, 136, 8);
HEXAD_FIELD_(hexad_host, alloc, 144, 8);
HEXAD_FIELD_(hexad_host, free, 152, 8);
HEXAD_FIELD_(hexad_host, tensor_new, 160, 8);
HEXAD_FIELD_(hexad_host, comm_axis, 168, 8);
HEXAD_FIELD_(hexad_host, comm_rank, 176, 8);
HEXAD_FIELD_(hexad_host, comm_size, 184, 8);
HEXAD_FIELD_(hexad_host, all_reduce, 192, 8);
HEXAD_FIELD_(hexad_host, all_gather, 200, 8);
HEXAD_FIELD_(hexad_host, reduce_scatter, 208, 8);
HEXAD_FIELD_(hexad_host, broadcast, 216, 8);
HEXAD_FIELD_(hexad_host, barrier, 224, 8);
HEXAD_FIELD_(hexad_host, comm_native, 232, 8);
HEXAD_FIELD_(hexad_host, comm_new, 240, 8);
HEXAD_FIELD_(hexad_host, kv_put, 248, 8);
HEXAD_FIELD_(hexad_host, kv_get, 256, 8);
HEXAD_FIELD_(hexad_host, range_push, 264, 8);
HEXAD_FIELD_(hexad_host, range_pop, 272, 8);
HEXAD_FIELD_(hexad_host, detokenize, 280, 8);
HEXAD_FIELD_(hexad_host, extension, 288, 8);
HEXAD_SIZE_(hexad_host, 296);

HEXAD_FIELD_(hexad_loss_batch, struct_size, 0, 4);
HEXAD_FIELD_(hexad_loss_batch, reserved, 4, 4);
HEXAD_FIELD_(hexad_loss_batch, num_sequences, 8, 8);
HEXAD_FIELD_(hexad_loss_batch, num_tokens, 16, 8);
HEXAD_FIELD_(hexad_loss_batch, cu_seqlens, 24, 8);
HEXAD_FIELD_(hexad_loss_batch, global_valid_tokens, 32, 8);
HEXAD_FIELD_(hexad_loss_batch, global_valid_sequences, 40, 8);
HEXAD_FIELD_(hexad_loss_batch, inputs, 48, 8);
HEXAD_FIELD_(hexad_loss_batch, num_inputs, 56, 8);
HEXAD_FIELD_(hexad_loss_batch, padded_length, 64, 8);
HEXAD_SIZE_(hexad_loss_batch, 72);

HEXAD_FIELD_(hexad_loss_out, struct_size, 0, 4);
HEXAD_FIELD_(hexad_loss_out, reserved, 4, 4);
HEXAD_FIELD_(hexad_loss_out, loss, 8, 8);
HEXAD_FIELD_(hexad_loss_out, grads, 16, 8);
HEXAD_FIELD_(hexad_loss_out, num_grads, 24, 8);
HEXAD_FIELD_(hexad_loss_out, metrics, 32, 8);
HEXAD_SIZE_(hexad_loss_out, 40);

HEXAD_FIELD_(hexad_loss_plan, struct_size, 0, 4);
HEXAD_FIELD_(hexad_loss_plan, reserved, 4, 4);
HEXAD_FIELD_(hexad_loss_plan, used_inputs, 8, 8);
HEXAD_FIELD_(hexad_loss_plan, used_metrics, 16, 8);
HEXAD_SIZE_(hexad_loss_plan, 24);

HEXAD_FIELD_(hexad_step_metrics, struct_size, 0, 4);
HEXAD_FIELD_(hexad_step_metrics, reserved, 4, 4);
HEXAD_FIELD_(hexad_step_metrics, names, 8, 8);
HEXAD_FIELD_(hexad_step_metrics, values, 16, 8);
HEXAD_FIELD_(hexad_step_metrics, count, 24, 8);
HEXAD_SIZE_(hexad_step_metrics, 32);

HEXAD_FIELD_(hexad_loss_vtable, struct_size, 0, 4);
HEXAD_FIELD_(hexad_loss_vtable, num_inputs, 4, 4);
HEXAD_FIELD_(hexad_loss_vtable, num_metrics, 8, 4);
HEXAD_FIELD_(hexad_loss_vtable, reserved, 12, 4);
HEXAD_FIELD_(hexad_loss_vtable, caps, 16, 8);
HEXAD_FIELD_(hexad_loss_vtable, inputs, 24, 8);
HEXAD_FIELD_(hexad_loss_vtable, metrics, 32, 8);
HEXAD_FIELD_(hexad_loss_vtable, create, 40, 8);
HEXAD_FIELD_(hexad_loss_vtable, destroy, 48, 8);
HEXAD_FIELD_(hexad_loss_vtable, compute, 56, 8);
HEXAD_FIELD_(hexad_loss_vtable, plan, 64, 8);
HEXAD_FIELD_(hexad_loss_vtable, advantages, 72, 8);
HEXAD_FIELD_(hexad_loss_vtable, end_step, 80, 8);
HEXAD_FIELD_(hexad_loss_vtable, state_save, 88, 8);
HEXAD_FIELD_(hexad_loss_vtable, state_load, 96, 8);
HEXAD_SIZE_(hexad_loss_vtable, 104);

HEXAD_FIELD_(hexad_weight_slice, name, 0, 8);
HEXAD_FIELD_(hexad_weight_slice, tensor, 8, 8);
HEXAD_FIELD_(hexad_weight_slice, global_shape, 16, 8);
HEXAD_FIELD_(hexad_weight_slice, offsets, 24, 8);
HEXAD_FIELD_(hexad_weight_slice, shape, 32, 8);
HEXAD_FIELD_(hexad_weight_slice, ndim, 40, 4);
HEXAD_FIELD_(hexad_weight_slice, dtype, 44, 4);
HEXAD_SIZE_(hexad_weight_slice, 48);

HEXAD_FIELD_(hexad_weight_list, struct_size, 0, 4);
HEXAD_FIELD_(hexad_weight_list, reserved, 4, 4);
HEXAD_FIELD_(hexad_weight_list, slices, 8, 8);
HEXAD_FIELD_(hexad_weight_list, count, 16, 8);
HEXAD_SIZE_(hexad_weight_list, 24);

HEXAD_FIELD_(hexad_weights_request, struct_size, 0, 4);
HEXAD_FIELD_(hexad_weights_request, which, 4, 4);
HEXAD_FIELD_(hexad_weights_request, form, 8, 4);
HEXAD_FIELD_(hexad_weights_request, reserved, 12, 4);
HEXAD_FIELD_(hexad_weights_request, max_bucket_bytes, 16, 8);
HEXAD_SIZE_(hexad_weights_request, 24);

HEXAD_FIELD_(hexad_backend_info, struct_size, 0, 4);
HEXAD_FIELD_(hexad_backend_info, reserved, 4, 4);
HEXAD_FIELD_(hexad_backend_info, num_parameters, 8, 8);
HEXAD_FIELD_(hexad_backend_info, dp_rank, 16, 8);
HEXAD_FIELD_(hexad_backend_info, dp_size, 24, 8);
HEXAD_FIELD_(hexad_backend_info, tp_size, 32, 8);
HEXAD_FIELD_(hexad_backend_info, pp_size, 40, 8);
HEXAD_FIELD_(hexad_backend_info, cp_size, 48, 8);
HEXAD_FIELD_(hexad_backend_info, ep_size, 56, 8);
HEXAD_FIELD_(hexad_backend_info, sequence_multiple, 64, 8);
HEXAD_FIELD_(hexad_backend_info, micro_batch_multiple, 72, 8);
HEXAD_FIELD_(hexad_backend_info, counts_loss, 80, 8);
HEXAD_FIELD_(hexad_backend_info, outputs, 88, 8);
HEXAD_FIELD_(hexad_backend_info, num_outputs, 96, 8);
HEXAD_FIELD_(hexad_backend_info, inputs, 104, 8);
HEXAD_FIELD_(hexad_backend_info, num_inputs, 112, 8);
HEXAD_SIZE_(hexad_backend_info, 120);

HEXAD_FIELD_(hexad_loss_callback, struct_size, 0, 4);
HEXAD_FIELD_(hexad_loss_callback, reserved, 4, 4);
HEXAD_FIELD_(hexad_loss_callback, ctx, 8, 8);
HEXAD_FIELD_(hexad_loss_callback, compute, 16, 8);
HEXAD_SIZE_(hexad_loss_callback, 24);

HEXAD_FIELD_(hexad_train_args, struct_size, 0, 4);
HEXAD_FIELD_(hexad_train_args, reserved, 4, 4);
HEXAD_FIELD_(hexad_train_args, batches, 8, 8);
HEXAD_FIELD_(hexad_train_args, num_batches, 16, 8);
HEXAD_FIELD_(hexad_train_args, outputs, 24, 8);
HEXAD_FIELD_(hexad_train_args, num_outputs, 32, 8);
HEXAD_FIELD_(hexad_train_args, loss, 40, 8);
HEXAD_FIELD_(hexad_train_args, temperature, 48, 8);
HEXAD_FIELD_(hexad_train_args, top_k, 56, 8);
HEXAD_FIELD_(hexad_train_args, top_p, 64, 8);
HEXAD_SIZE_(hexad_train_args, 72);

HEXAD_FIELD_(hexad_forward_args, struct_size, 0, 4);
HEXAD_FIELD_(hexad_forward_args, which, 4, 4);
HEXAD_FIELD_(hexad_forward_args, batches, 8, 8);
HEXAD_FIELD_(hexad_forward_args, num_batches, 16, 8);
HEXAD_FIELD_(hexad_forward_args, outputs, 24, 8);
HEXAD_FIELD_(hexad_forward_args, num_outputs, 32, 8);
HEXAD_FIELD_(hexad_forward_args, temperature, 40, 8);
HEXAD_FIELD_(hexad_forward_args, top_k, 48, 8);
HEXAD_FIELD_(hexad_forward_args, top_p, 56, 8);
HEXAD_SIZE_(hexad_forward_args, 64);

HEXAD_FIELD_(hexad_step_args, struct_size, 0, 4);
HEXAD_FIELD_(hexad_step_args, flags, 4, 4);
HEXAD_FIELD_(hexad_step_args, lr, 8, 8);
HEXAD_FIELD_(hexad_step_args, weight_decay, 16, 8);
HEXAD_FIELD_(hexad_step_args, max_grad_norm, 24, 8);
HEXAD_SIZE_(hexad_step_args, 32);

HEXAD_FIELD_(hexad_step_stats, struct_size, 0, 4);
HEXAD_FIELD_(hexad_step_stats, skipped, 4, 4);
HEXAD_FIELD_(hexad_step_stats, grad_norm, 8, 8);
HEXAD_SIZE_(hexad_step_stats, 16);

HEXAD_FIELD_(hexad_checkpoint_args, struct_size, 0, 4);
HEXAD_FIELD_(hexad_checkpoint_args, what, 4, 4);
HEXAD_FIELD_(hexad_checkpoint_args, weights_uri, 8, 8);
HEXAD_FIELD_(hexad_checkpoint_args, optimizer_uri, 16, 8);
HEXAD_FIELD_(hexad_checkpoint_args, which, 24, 4);
HEXAD_FIELD_(hexad_checkpoint_args, reserved, 28, 4);
HEXAD_SIZE_(hexad_checkpoint_args, 32);

HEXAD_FIELD_(hexad_memory_stats, struct_size, 0, 4);
HEXAD_FIELD_(hexad_memory_stats, reserved, 4, 4);
HEXAD_FIELD_(hexad_memory_stats, parameter_bytes, 8, 8);
HEXAD_FIELD_(hexad_memory_stats, gradient_bytes, 16, 8);
HEXAD_FIELD_(hexad_memory_stats, optimizer_bytes, 24, 8);
HEXAD_FIELD_(hexad_memory_stats, activation_peak_bytes, 32, 8);
HEXAD_FIELD_(hexad_memory_stats, allocated_bytes, 40, 8);
HEXAD_FIELD_(hexad_memory_stats, reserved_bytes, 48, 8);
HEXAD_SIZE_(hexad_memory_stats, 56);

HEXAD_FIELD_(hexad_backend_vtable, struct_size, 0, 4);
HEXAD_FIELD_(hexad_backend_vtable, reserved, 4, 4);
HEXAD_FIELD_(hexad_backend_vtable, create, 8, 8);
HEXAD_FIELD_(hexad_backend_vtable, destroy, 16, 8);
HEXAD_FIELD_(hexad_backend_vtable, describe, 24, 8);
HEXAD_FIELD_(hexad_backend_vtable, forward, 32, 8);
HEXAD_FIELD_(hexad_backend_vtable, train, 40, 8);
HEXAD_FIELD_(hexad_backend_vtable, step, 48, 8);
HEXAD_FIELD_(hexad_backend_vtable, keep, 56, 8);
HEXAD_FIELD_(hexad_backend_vtable, load, 64, 8);
HEXAD_FIELD_(hexad_backend_vtable, save, 72, 8);
HEXAD_FIELD_(hexad_backend_vtable, weight_layout, 80, 8);
HEXAD_FIELD_(hexad_backend_vtable, weights_begin, 88, 8);
HEXAD_FIELD_(hexad_backend_vtable, weights_next, 96, 8);
HEXAD_FIELD_(hexad_backend_vtable, weights_end, 104, 8);
HEXAD_FIELD_(hexad_backend_vtable, offload, 112, 8);
HEXAD_FIELD_(hexad_backend_vtable, onload, 120, 8);
HEXAD_FIELD_(hexad_backend_vtable, memory, 128, 8);
HEXAD_SIZE_(hexad_backend_vtable, 136);

HEXAD_FIELD_(hexad_generator_info, struct_size, 0, 4);
HEXAD_FIELD_(hexad_generator_info, reserved, 4, 4);
HEXAD_FIELD_(hexad_generator_info, caps, 8, 8);
HEXAD_FIELD_(hexad_generator_info, max_sequences, 16, 8);
HEXAD_FIELD_(hexad_generator_info, max_model_len, 24, 8);
HEXAD_FIELD_(hexad_generator_info, kv_capacity, 32, 8);
HEXAD_FIELD_(hexad_generator_info, weight_form, 40, 8);
HEXAD_SIZE_(hexad_generator_info, 48);

HEXAD_FIELD_(hexad_request, struct_size, 0, 4);
HEXAD_FIELD_(hexad_request, flags, 4, 4);
HEXAD_FIELD_(hexad_request, id, 8, 8);
HEXAD_FIELD_(hexad_request, group, 16, 8);
HEXAD_FIELD_(hexad_request, prompt, 24, 8);
HEXAD_FIELD_(hexad_request, prompt_size, 32, 8);
HEXAD_FIELD_(hexad_request, max_new_tokens, 40, 8);
HEXAD_FIELD_(hexad_request, seed, 48, 8);
HEXAD_FIELD_(hexad_request, temperature, 56, 8);
HEXAD_FIELD_(hexad_request, top_p, 64, 8);
HEXAD_FIELD_(hexad_request, min_p, 72, 8);
HEXAD_FIELD_(hexad_request, top_k, 80, 8);
HEXAD_FIELD_(hexad_request, stop_token_ids, 88, 8);
HEXAD_FIELD_(hexad_request, num_stop_token_ids, 96, 8);
HEXAD_FIELD_(hexad_request, stop_strings, 104, 8);
HEXAD_FIELD_(hexad_request, num_stop_strings, 112, 8);
HEXAD_SIZE_(hexad_request, 120);

HEXAD_FIELD_(hexad_version_span, start, 0, 8);
HEXAD_FIELD_(hexad_version_span, version, 8, 8);
HEXAD_SIZE_(hexad_version_span, 16);

HEXAD_FIELD_(hexad_completion, struct_size, 0, 4);
HEXAD_FIELD_(hexad_completion, finish, 4, 4);
HEXAD_FIELD_(hexad_completion, id, 8, 8);
HEXAD_FIELD_(hexad_completion, tokens, 16, 8);
HEXAD_FIELD_(hexad_completion, logprobs, 24, 8);
HEXAD_FIELD_(hexad_completion, count, 32, 8);
HEXAD_FIELD_(hexad_completion, spans, 40, 8);
HEXAD_FIELD_(hexad_completion, num_spans, 48, 8);
HEXAD_FIELD_(hexad_completion, error, 56, 8);
#if HEXAD_TARGET_MINOR >= 2
HEXAD_FIELD_(hexad_completion, columns, 64, 8);
HEXAD_FIELD_(hexad_completion, num_columns, 72, 8);
HEXAD_SIZE_(hexad_completion, 80);
#endif

HEXAD_FIELD_(hexad_generator_vtable, struct_size, 0, 4);
HEXAD_FIELD_(hexad_generator_vtable, reserved, 4, 4);
HEXAD_FIELD_(hexad_generator_vtable, create, 8, 8);
HEXAD_FIELD_(hexad_generator_vtable, destroy, 16, 8);
HEXAD_FIELD_(hexad_generator_vtable, describe, 24, 8);
HEXAD_FIELD_(hexad_generator_vtable, submit, 32, 8);
HEXAD_FIELD_(hexad_generator_vtable, poll, 40, 8);
HEXAD_FIELD_(hexad_generator_vtable, release, 48, 8);
HEXAD_FIELD_(hexad_generator_vtable, cancel, 56, 8);
HEXAD_FIELD_(hexad_generator_vtable, update_begin, 64, 8);
HEXAD_FIELD_(hexad_generator_vtable, update_bucket, 72, 8);
HEXAD_FIELD_(hexad_generator_vtable, update_end, 80, 8);
HEXAD_FIELD_(hexad_generator_vtable, weight_layout, 88, 8);
HEXAD_FIELD_(hexad_generator_vtable, pause, 96, 8);
HEXAD_FIELD_(hexad_generator_vtable, resume, 104, 8);
HEXAD_FIELD_(hexad_generator_vtable, sleep, 112, 8);
HEXAD_FIELD_(hexad_generator_vtable, wake, 120, 8);
HEXAD_FIELD_(hexad_generator_vtable, flush_cache, 128, 8);
HEXAD_SIZE_(hexad_generator_vtable, 136);

#if HEXAD_TARGET_MINOR >= 1
HEXAD_FIELD_(hexad_sample, struct_size, 0, 4);
HEXAD_FIELD_(hexad_sample, finish, 4, 4);
HEXAD_FIELD_(hexad_sample, group, 8, 8);
HEXAD_FIELD_(hexad_sample, prompt, 16, 8);
HEXAD_FIELD_(hexad_sample, prompt_size, 24, 8);
HEXAD_FIELD_(hexad_sample, response, 32, 8);
HEXAD_FIELD_(hexad_sample, response_size, 40, 8);
HEXAD_FIELD_(hexad_sample, ground_truth, 48, 8);
HEXAD_FIELD_(hexad_sample, ground_truth_size, 56, 8);
HEXAD_FIELD_(hexad_sample, metadata, 64, 8);
HEXAD_FIELD_(hexad_sample, metadata_size, 72, 8);
HEXAD_FIELD_(hexad_sample, tokens, 80, 8);
HEXAD_FIELD_(hexad_sample, prompt_tokens, 88, 8);
HEXAD_FIELD_(hexad_sample, response_tokens, 96, 8);
#endif
#if HEXAD_TARGET_MINOR >= 3
HEXAD_FIELD_(hexad_sample, turn, 104, 8);
HEXAD_FIELD_(hexad_sample, state, 112, 8);
HEXAD_FIELD_(hexad_sample, state_size, 120, 8);
HEXAD_SIZE_(hexad_sample, 128);
#endif

#if HEXAD_TARGET_MINOR >= 3
HEXAD_FIELD_(hexad_reply, content, 0, 8);
HEXAD_FIELD_(hexad_reply, content_size, 8, 8);
HEXAD_FIELD_(hexad_reply, role, 16, 8);
HEXAD_FIELD_(hexad_reply, state, 24, 8);
HEXAD_FIELD_(hexad_reply, state_size, 32, 8);
HEXAD_SIZE_(hexad_reply, 40);
#endif

#if HEXAD_TARGET_MINOR >= 4
HEXAD_FIELD_(hexad_answer, text, 0, 8);
HEXAD_FIELD_(hexad_answer, size, 8, 8);
HEXAD_SIZE_(hexad_answer, 16);
#endif

#if HEXAD_TARGET_MINOR >= 1
HEXAD_FIELD_(hexad_scores, struct_size, 0, 4);
HEXAD_FIELD_(hexad_scores, reserved, 4, 4);
HEXAD_FIELD_(hexad_scores, rewards, 8, 8);
HEXAD_FIELD_(hexad_scores, invalid, 16, 8);
HEXAD_FIELD_(hexad_scores, components, 24, 8);
#endif
#if HEXAD_TARGET_MINOR >= 3
HEXAD_FIELD_(hexad_scores, replies, 32, 8);
#endif
#if HEXAD_TARGET_MINOR >= 4
HEXAD_FIELD_(hexad_scores, answers, 40, 8);
HEXAD_SIZE_(hexad_scores, 48);
#endif

#if HEXAD_TARGET_MINOR >= 1
HEXAD_FIELD_(hexad_environment_vtable, struct_size, 0, 4);
HEXAD_FIELD_(hexad_environment_vtable, num_components, 4, 4);
HEXAD_FIELD_(hexad_environment_vtable, caps, 8, 8);
HEXAD_FIELD_(hexad_environment_vtable, components, 16, 8);
HEXAD_FIELD_(hexad_environment_vtable, create, 24, 8);
HEXAD_FIELD_(hexad_environment_vtable, destroy, 32, 8);
HEXAD_FIELD_(hexad_environment_vtable, score, 40, 8);
HEXAD_SIZE_(hexad_environment_vtable, 48);
#endif

HEXAD_FIELD_(hexad_plugin_desc, struct_size, 0, 4);
HEXAD_FIELD_(hexad_plugin_desc, abi_minor, 4, 4);
HEXAD_FIELD_(hexad_plugin_desc, min_host_minor, 8, 4);
HEXAD_FIELD_(hexad_plugin_desc, kind, 12, 4);
HEXAD_FIELD_(hexad_plugin_desc, name, 16, 8);
HEXAD_FIELD_(hexad_plugin_desc, version, 24, 8);
HEXAD_FIELD_(hexad_plugin_desc, license, 32, 8);
HEXAD_FIELD_(hexad_plugin_desc, build_id, 40, 8);
HEXAD_FIELD_(hexad_plugin_desc, backend, 48, 8);
HEXAD_FIELD_(hexad_plugin_desc, generator, 56, 8);
HEXAD_FIELD_(hexad_plugin_desc, loss, 64, 8);
HEXAD_FIELD_(hexad_plugin_desc, next, 72, 8);
#if HEXAD_TARGET_MINOR >= 1
HEXAD_FIELD_(hexad_plugin_desc, environment, 80, 8);
HEXAD_SIZE_(hexad_plugin_desc, 88);
#endif

#undef HEXAD_SIZE_
#undef HEXAD_FIELD_
#undef HEXAD_ASSERT_
#endif  /* HEXAD_ABI_LAYOUT_H_ */
