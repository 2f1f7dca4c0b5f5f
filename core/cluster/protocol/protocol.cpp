#include "core/cluster/protocol/codec.hpp"

namespace hexad::cluster::protocol {

HEXAD_ROW(RankRange, first, count)
HEXAD_ROW(LayoutSlice, name, global_shape, box.offsets, box.shape, type_code, bits)
HEXAD_ROW(RefitPart::Send, weight, to, box.offsets, box.shape)
HEXAD_ROW(RefitPart::Receive, slice, from, box.offsets, box.shape)
HEXAD_FIELDS(RefitPart::Step, sends, receives)
HEXAD_FIELDS(RefitPart, steps, needed)
HEXAD_FIELDS(Roles, backend, loss, generator)
HEXAD_FIELDS(plugin::LogitTransform, temperature, top_k, top_p)
HEXAD_INHERITED(BackendInfo, name, version, path, sha256, num_parameters, dp_rank, dp_size, sequence_multiple,
                micro_batch_multiple, counts_loss, inputs, outputs)
HEXAD_INHERITED(LossInfo, name, version, path, sha256, inputs, differentiates)
HEXAD_INHERITED(GeneratorInfo, name, version, path, sha256, max_sequences, max_model_len, kv_capacity)
HEXAD_FIELDS(MicroBatch, rows, padded_length, dummy)
HEXAD_FIELDS(Sampling, temperature, top_p, min_p, top_k, greedy, ignore_eos, stop_token_ids, stop_strings)
HEXAD_FIELDS(WeightSums::Sum, sum, bytes)

HEXAD_EVENT(Hello, "hello", version, host, pid, reached)
HEXAD_EVENT(Heartbeat, "heartbeat", inside)
HEXAD_EVENT(Progress, "progress", what, done, total, tokens)
HEXAD_EVENT(Completions, "completions", ids, errors, metrics, completions, columns)
HEXAD_EVENT(Failed, "failed", error, error_kind, lost_peer)
HEXAD_REPLY(Failure, error, error_kind, lost_peer)
HEXAD_REPLY(Nothing)

HEXAD_COMMAND(Start, "start", device, deterministic, world_size, local_world, block, master_address, master_port,
              timeout_ms, roles, transform, replay_routes, tokenizer, loss_section, algorithm, plugins, policy,
              generation, loss_fn, locations)
HEXAD_REPLY(Start::Reply, backend, loss, generator, device, card)
HEXAD_COMMAND(Shutdown, "shutdown")
HEXAD_COMMAND(Cancel, "cancel")
HEXAD_COMMAND(Trace, "trace", path)

HEXAD_COMMAND(Forward, "forward", batch, micro_batches, outputs, which, filters)
HEXAD_REPLY(Forward::Reply, outputs)
HEXAD_COMMAND(Train, "train", batch, micro_batches, global_valid_tokens, global_valid_sequences)
HEXAD_COMMAND(Evaluate, "evaluate", batch, micro_batches, global_valid_tokens, global_valid_sequences)
HEXAD_REPLY(LossReply, metrics)
HEXAD_COMMAND(Step, "step", lr, weight_decay, max_grad_norm, discard)
HEXAD_REPLY(Step::Reply, metrics, grad_norm, skipped)

HEXAD_COMMAND(Generate, "generate", prompts, sampling, reports)
HEXAD_REPLY(Generate::Reply, completions, columns, metrics)
HEXAD_COMMAND(Submit, "submit", prompts, sampling, reports)
HEXAD_COMMAND(CancelRequests, "cancel_requests", ids)
HEXAD_COMMAND(Sleep, "sleep", level)
HEXAD_COMMAND(Wake, "wake")

HEXAD_COMMAND(Refit, "refit", version, recompute_kv_cache)
HEXAD_REPLY(Refit::Reply, seconds)
HEXAD_COMMAND(RefitLayout, "refit_layout")
HEXAD_REPLY(RefitLayout::Reply, held, needed, form)
HEXAD_COMMAND(RefitConnect, "refit_connect", ranks, name, part)
HEXAD_COMMAND(WeightSums, "weight_sums")
HEXAD_REPLY(WeightSums::Reply, sums, metrics)
HEXAD_COMMAND(Keep, "keep", which)
HEXAD_COMMAND(Save, "save", weights, optimizer)
HEXAD_REPLY(Save::Reply, failure)
HEXAD_COMMAND(Saved, "saved", patience_ms)
HEXAD_REPLY(Saved::Reply, done, failure)
HEXAD_COMMAND(Load, "load", weights, optimizer, which)

bool is_failure(const Message& message) { return message.header.contains("error"); }

void check_version(const Hello& hello, int rank) {
  if (hello.version == kVersion) return;
  fail(ErrorKind::worker,
       "rank {} on {} (pid {}) speaks {} of the protocol between controller and workers, wanted version {}: it runs "
       "another build of hexad. Install the same build on every host, and start it by the same path",
       rank, hello.host, hello.pid, hello.version ? fmt::format("version {}", *hello.version) : "no version", kVersion);
}

}  // namespace hexad::cluster::protocol
