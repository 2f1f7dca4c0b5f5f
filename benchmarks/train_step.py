#!/usr/bin/env python3
"""Training steps and log-prob passes of a backend on GPUs, beside transformers + FSDP2 + compile, in one run.

    benchmarks/train_step.py --build build/cuda --out RESULT.json [--model qwen2.5-1.5b] [--gpus 1] [--backend dtensor]
        [--fp8 hybrid [--fp8-recipe blockwise]] [--batch-invariant] [--micro-batch 16384] [--tokens 131072] [--steps 6]
        [--rows packed,full,packed-fp8] [--weights FOLDER [--cold]] [--peer peer_hf_train.py]
        [--peer-options='--packed --tokens 16384'] [key=value ...]

Random weights at the real shapes, packed RL lengths (lognormal, mean 800, cut at 4096) or full rows of 4096; rows that
end in -fp8 in FP8, the others in bf16. --weights keeps the weights for the next script, and --cold has each
kind of rows read them from their disk. The peer trains full rows, or what --peer-options say, with as many
tokens an optimizer step. Before timing, a small batch is checked: log-probs and gradient
norm in fp32 against transformers in fp32, and in bf16, and with --fp8 in FP8, against fp32. Exits with 1 when a check
does not hold. Needs Python with torch, transformers and safetensors, for the weights, the reference and the peer.

TFLOP/s count as Megatron-LM does: 6 * matrix parameters * tokens + 6 * layers * query width * sum of squared lengths
(causal), over real tokens.
"""
import argparse
import array
import contextlib
import json
import math
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile

import page_cache

MODELS = {
    "qwen2.5-1.5b": dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=1536,
                         intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
                         num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True,
                         max_position_embeddings=32768, rope_theta=1e6, rms_norm_eps=1e-6),
    "tiny": dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=64, intermediate_size=128,
                 num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=16, vocab_size=512, tie_word_embeddings=False,
                 max_position_embeddings=4096, rope_theta=1e4, rms_norm_eps=1e-5),
    # As small as blocks of 128 x 128 and attention kernels take it.
    "blocks": dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=512, intermediate_size=1024,
                   num_hidden_layers=4, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=128, vocab_size=512, tie_word_embeddings=False,
                   max_position_embeddings=4096, rope_theta=1e4, rms_norm_eps=1e-5),
    "llama-1b": dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=2048, intermediate_size=8192,
                     num_hidden_layers=16, num_attention_heads=32,
                     num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True,
                     max_position_embeddings=131072, rope_theta=5e5, rms_norm_eps=1e-5),
    "llama-8b": dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096, intermediate_size=14336,
                     num_hidden_layers=32, num_attention_heads=32,
                     num_key_value_heads=8, head_dim=128, vocab_size=128256, tie_word_embeddings=False,
                     max_position_embeddings=131072, rope_theta=5e5, rms_norm_eps=1e-5),
    "qwen3-30b-a3b": dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=2048,
                          intermediate_size=6144, moe_intermediate_size=768, num_experts=128,
                          num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
                          num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4,
                          head_dim=128, vocab_size=151936, tie_word_embeddings=False, max_position_embeddings=40960,
                          rope_theta=1e6, rms_norm_eps=1e-6),
}
CHECKED_LAYERS = 2  # of a model with experts: in fp32, with its optimizer, all of them are too many
# Bounds of the check. fp32 against fp32: other summation orders. The mean error of a log-prob against fp32 grows with
# the layers of random weights, so it is held against what rounds as much: in bf16 that of transformers in bf16, in FP8
# that of bf16 times the ratio of what one linear is off, 0.037 and 0.0017 of its norm (benchmarks/fp8_linear.cpp).
FP32_LOGPROB = 2e-3
BF16_TIMES_TRANSFORMERS, FP8_TIMES_BF16 = 1.25, 0.037 / 0.0017
GRAD_NORM = {"bf16": 0.02, "fp8": 0.1}


def skewed_lengths(count, mean, cut, seed, sigma=1.0):
    """Lognormal lengths, cut at `cut`, whose mean after the cut is `mean`."""
    draw = random.Random(seed)
    normal = [draw.gauss(0, 1) for _ in range(count)]
    at = lambda mu: [max(8, min(cut, round(math.exp(mu + sigma * z)))) for z in normal]
    low, high = 0.0, math.log(cut)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) < mean * count else (low, middle)
    return at(low)


def head_sizes(config):
    """Widths of queries and keys."""
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return head * config["num_attention_heads"], head * config["num_key_value_heads"]


def layer_shapes(config, i):
    hidden, p = config["hidden_size"], f"model.layers.{i}."
    query, key = head_sizes(config)
    shapes = {p + "input_layernorm.weight": (hidden,), p + "post_attention_layernorm.weight": (hidden,),
              p + "self_attn.q_proj.weight": (query, hidden),
              p + "self_attn.k_proj.weight": (key, hidden), p + "self_attn.v_proj.weight": (key, hidden),
              p + "self_attn.o_proj.weight": (hidden, query)}
    mlps = {"": config["intermediate_size"]}
    if config["model_type"] == "qwen3_moe":
        head = query // config["num_attention_heads"]
        shapes.update({p + "self_attn.q_norm.weight": (head,), p + "self_attn.k_norm.weight": (head,),
                       p + "mlp.gate.weight": (config["num_experts"], hidden)})
        mlps = {f"experts.{e}.": config["moe_intermediate_size"] for e in range(config["num_experts"])}
    for name, width in mlps.items():
        shapes.update({p + f"mlp.{name}gate_proj.weight": (width, hidden),
                       p + f"mlp.{name}up_proj.weight": (width, hidden),
                       p + f"mlp.{name}down_proj.weight": (hidden, width)})
    if config["model_type"] == "qwen2":
        shapes.update({p + "self_attn.q_proj.bias": (query,), p + "self_attn.k_proj.bias": (key,),
                       p + "self_attn.v_proj.bias": (key,)})
    return shapes


def add_model_arguments(parser, model, gpus):
    """What every benchmark of a model asks for, with its defaults."""
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/cuda"))
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default=model, choices=sorted(MODELS))
    parser.add_argument("--layers", type=int, default=0, help="fewer layers than the model has; said in the result")
    parser.add_argument("--gpus", type=int, default=gpus)
    parser.add_argument("--backend", default="dtensor")
    parser.add_argument("--weights", type=pathlib.Path,
                        help="folder of the random weights: used if it has them, made and kept if not")


def add_pass_arguments(parser):
    """Of what run() measures, besides: kinds of rows, their size and precision."""
    parser.add_argument("--fp8", default="", choices=["", "e4m3", "hybrid"], help="linears in FP8")
    parser.add_argument("--fp8-recipe", default="tensorwise", choices=["tensorwise", "blockwise"],
                        help="how FP8 is scaled")
    parser.add_argument("--batch-invariant", action="store_true", help="bf16 passes in policy.batch_invariant")
    parser.add_argument("--micro-batch", type=int, default=16384)
    parser.add_argument("--tokens", type=int, default=131072, help="of an optimizer step, or a pass, and GPU")
    parser.add_argument("--rows", default="packed,full")
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("override", nargs="*")


@contextlib.contextmanager
def weights_of(args, config, make):
    """A folder with the model's random weights: --weights, made where it has none, or one that goes with the script."""
    with contextlib.ExitStack() as stack:
        folder = args.weights or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        there = folder / "config.json"
        if not there.exists() or json.loads(there.read_text()) != config:
            make(folder, config)
        yield folder


def model_config(args):
    config = dict(MODELS[args.model], torch_dtype="bfloat16", hidden_act="silu", bos_token_id=0, eos_token_id=1)
    if args.layers:
        config["num_hidden_layers"] = args.layers
    return config


def rows_of(parser, args):
    """The kinds of rows that are asked for; what is in FP8 says so in its name."""
    rows_wanted = args.rows.split(",")
    if any(rows.endswith("-fp8") for rows in rows_wanted) != bool(args.fp8):
        parser.error("rows in FP8 are named as packed-fp8, and --fp8 says their format")
    return rows_wanted


def step_lengths(args, rows):
    """Lengths of --tokens a GPU, packed RL lengths or full rows, as many a GPU."""
    tokens = args.tokens * args.gpus
    lengths = [4096] * (tokens // 4096) if rows.startswith("full") else skewed_lengths(tokens // 800, 800, 4096, 3)
    return lengths[:len(lengths) // args.gpus * args.gpus]


def weight_shapes(config):
    """Of the ends of the model, then of each layer."""
    hidden = config["hidden_size"]
    ends = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        ends["lm_head.weight"] = (config["vocab_size"], hidden)
    return [ends] + [layer_shapes(config, i) for i in range(config["num_hidden_layers"])]


def make_model(folder, config):
    """Random bf16 weights, made on the GPU, a file for each layer, in place of the model in the folder; how many."""
    import torch
    from safetensors.torch import save_file
    for file in folder.glob("model*"):
        file.unlink()
    torch.manual_seed(0)
    files, elements = {}, 0
    for i, shapes in enumerate(weight_shapes(config)):
        weights = {name: (1 + 0.1 * torch.randn(shape, device="cuda") if name.endswith("norm.weight")
                          else 0.02 * torch.randn(shape, device="cuda")).to(torch.bfloat16).cpu()
                   for name, shape in shapes.items()}
        save_file(weights, folder / f"model-{i:05}.safetensors")
        files.update({name: f"model-{i:05}.safetensors" for name in shapes})
        elements += sum(math.prod(s) for s in shapes.values())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 2 * elements},
                                                                     "weight_map": files}))
    (folder / "config.json").write_text(json.dumps(config))
    return elements


def make_small_model(folder, config):
    """The same by the standard library alone, for a CPU and small shapes."""
    draw, header, data = random.Random(0), {}, bytearray()
    for name, shape in [weight for part in weight_shapes(config) for weight in part.items()]:
        norm = name.endswith("norm.weight")
        begin = len(data)
        for _ in range(math.prod(shape)):
            data += struct.pack("<f", draw.gauss(1, 0.1) if norm else draw.gauss(0, 0.02))[2:]  # cut to bf16
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))
    return len(data) // 2


def flops(config, lengths):
    """Of a training step: the weights that a token meets, all but the experts that it does not go to."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    query, key = head_sizes(config)
    mlp = 3 * hidden * config["intermediate_size"]
    if config["model_type"] == "qwen3_moe":
        mlp = hidden * (3 * config["moe_intermediate_size"] * config["num_experts_per_tok"] + config["num_experts"])
    matrices = layers * (hidden * (2 * query + 2 * key) + mlp) + config["vocab_size"] * hidden
    return 6 * matrices * sum(lengths) + 6 * layers * query * sum(n * n for n in lengths)


def fp8_keys(args, enabled):
    section = f"++policy.{args.backend}_cfg.fp8_cfg"
    return [f"{section}.enabled={str(enabled).lower()}", f"{section}.fp8={args.fp8}",
            f"{section}.fp8_recipe={args.fp8_recipe}"] if args.fp8 else []


def run(args, model, scratch, lengths, name, steps, logprobs, precision="bfloat16", save=None):
    """What bin/train_step measures of the weights in `model`; in FP8 where the name ends so."""
    path = scratch / f"{name}.json"
    path.write_text(json.dumps(lengths))
    command = [str(args.build / "bin" / "train_step"), str(model), "--hexad", str(args.build / "bin" / "hexad"),
               "--lengths", str(path), "--steps", str(steps),
               "--logprobs", str(logprobs), *(["--save", str(save)] if save else []), f"policy.precision={precision}",
               "policy.sequence_packing.enabled=true",
               f"++policy.sequence_packing.train_mb_tokens={args.micro_batch}",
               f"++policy.sequence_packing.logprob_mb_tokens={args.micro_batch}",
               "++policy.sequence_packing.algorithm=modified_first_fit_decreasing",
               "++policy.max_total_sequence_length=4096",
               f"policy.train_global_batch_size={len(lengths)}", "policy.max_grad_norm=1.0",
               f"++cluster.gpus_per_node={args.gpus}", "++cluster.device=cuda",
               f"policy.backend={args.backend}", *fp8_keys(args, name.endswith("-fp8")),
               *(["++policy.batch_invariant=true"] if args.batch_invariant and precision == "bfloat16"
                 and not name.endswith("-fp8") else []), *args.override]
    if args.trace and name in args.rows.split(","):
        command += ["--trace", str(pathlib.Path(args.trace) / f"{name}.json")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout)
    if result.returncode:
        raise RuntimeError(f"train_step {name}: exit {result.returncode}: {(result.stderr + result.stdout)[-1500:]}")
    return json.loads(result.stdout.splitlines()[-1])


def numbers(path, kind):
    values = array.array(kind)
    values.frombytes(pathlib.Path(path).read_bytes())
    return values


def check(args, model_folder, scratch):
    """Log-probs and gradient norm of a small batch."""
    import torch
    from transformers import AutoModelForCausalLM
    lengths = [1, 5, 700, 64, 333, 128, 2, 90]
    exact = run(args, model_folder, scratch, lengths, "check-fp32", 1, 1, "float32", scratch / "fp32")
    fp32 = numbers(scratch / "fp32.logprobs", "f")
    result = {"grad_norm": exact["grad_norm"][0], "ok": True}
    for kind in ("bf16", "fp8") if args.fp8 else ("bf16",):
        got = run(args, model_folder, scratch, lengths, f"check-{kind}", 1, 1, "bfloat16", scratch / kind)
        errors = [abs(a - b) for a, b in zip(fp32, numbers(scratch / f"{kind}.logprobs", "f"), strict=True)]
        mean, norm = sum(errors) / len(errors), abs(got["grad_norm"][0] / exact["grad_norm"][0] - 1)
        result.update({f"{kind}_mean_logprob_error": mean, f"{kind}_grad_norm_error": norm,
                       f"{kind}_token_mult_prob_error": sum(map(math.exp, errors)) / len(errors)})
        result["ok"] &= norm <= GRAD_NORM[kind]
    # The same tokens through transformers.
    ids = list(numbers(scratch / "fp32.ids", "q"))
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32).cuda().eval()

    def errors_of(model):
        errors, at = [], 0
        with torch.no_grad():
            for n in lengths:
                row = torch.tensor(ids[at:at + n], device="cuda")[None]
                logprobs = torch.log_softmax(model(row).logits[0].float(),
                                             -1)[:-1].gather(1, row[0, 1:, None])[:, 0].tolist()
                errors += [0.0] + [abs(a - b) for a, b in zip(fp32[at + 1:at + n], logprobs, strict=True)]
                at += n
        return errors

    worst, theirs = max(errors_of(model)), errors_of(model.bfloat16())
    del model
    torch.cuda.empty_cache()
    result.update({"fp32_worst_logprob_error": worst,
                   "transformers_bf16_mean_logprob_error": sum(theirs) / len(theirs)})
    result["ok"] &= worst <= FP32_LOGPROB
    result["ok"] &= result["bf16_mean_logprob_error"] <= BF16_TIMES_TRANSFORMERS * result[
        "transformers_bf16_mean_logprob_error"]
    result["ok"] &= result.get("fp8_mean_logprob_error", 0) <= FP8_TIMES_BF16 * result["bf16_mean_logprob_error"]
    return result


def peer(args):
    """The peer's numbers, with the largest micro-batch that fits, from --peer-micro-batch down."""
    for micro_batch in (args.peer_micro_batch >> k for k in range(args.peer_micro_batch.bit_length())):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(args.gpus), args.peer,
                   "--model", args.model, "--seq", "4096", "--mbs",
                   str(micro_batch), "--accum", str(max(1, args.tokens // (micro_batch * 4096))), "--steps",
                   str(args.steps), "--compile", *args.peer_options.split()]
        result = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout,
                                env=os.environ | {"LD_LIBRARY_PATH": ""})
        found = re.search(r"([\d.]+) tok/s/GPU, ([\d.]+) TFLOP/s/GPU, peak ([\d.]+) GiB", result.stdout)
        if found:
            return {"tokens_per_second_per_gpu": float(found[1]), "tflops_per_gpu": float(found[2]),
                    "peak_gib": float(found[3]), "command": " ".join(command[1:])}
        if "out of memory" not in result.stderr:
            break
    # Of several processes: what the first one said, before torchrun's summary of them all.
    reasons = [line for line in result.stderr.splitlines() if re.match(r"(\[rank\d+\]: *)?[\w.]*Error\b", line)]
    raise RuntimeError(
        f"the peer printed no result: {reasons[0] if reasons else (result.stderr + result.stdout)[-800:]}")


def main():
    parser = argparse.ArgumentParser()
    add_model_arguments(parser, "qwen2.5-1.5b", 1)
    add_pass_arguments(parser)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--peer", default="", help="path of peer_hf_train.py")
    parser.add_argument("--peer-micro-batch", type=int, default=4)
    parser.add_argument("--peer-options", default="", help="more of the peer's own")
    parser.add_argument("--cold", action="store_true",
                        help="weights leave the page cache before each kind of rows; the result says what share stayed")
    parser.add_argument("--trace", default="",
                        help="folder for a Chrome trace of one more step of each kind of rows, a file for each rank")
    args = parser.parse_args()
    rows_wanted = rows_of(parser, args)
    config = model_config(args)
    result = {"model": args.model, "layers": config["num_hidden_layers"], "gpus": args.gpus, "backend": args.backend,
              "batch_invariant": args.batch_invariant, "fp8": args.fp8,
              "fp8_recipe": args.fp8_recipe if args.fp8 else "", "micro_batch": args.micro_batch}
    with tempfile.TemporaryDirectory() as temporary, weights_of(args, config, make_model) as model:
        scratch = pathlib.Path(temporary)
        result["checks"] = {"skipped": True, "ok": True}
        if not args.no_check:
            checked, layers = model, config["num_hidden_layers"]
            if "num_experts" in config and layers > CHECKED_LAYERS:
                checked, layers = scratch / "checked", CHECKED_LAYERS
                checked.mkdir()
                make_model(checked, dict(config, num_hidden_layers=layers))
            result["checks"] = dict(check(args, checked, scratch), layers=layers)
        print(json.dumps(result["checks"]), flush=True)
        for rows in rows_wanted:
            lengths = step_lengths(args, rows)
            if args.cold:
                page_cache.drop(model)
            resident = page_cache.resident_share(model)
            got = run(args, model, scratch, lengths, rows, args.steps, 3)
            step, logprobs = statistics.median(got["train_s"][2:]), min(got["logprobs_s"][1:])
            result[rows] = {"tokens": sum(lengths), "step_s": step,
                            "tokens_per_second_per_gpu": sum(lengths) / step / args.gpus,
                            "tflops_per_gpu": flops(config, lengths) / step / args.gpus / 1e12, "logprobs_s": logprobs,
                            "logprob_tflops_per_gpu": flops(config, lengths) / 3 / logprobs / args.gpus / 1e12,
                            "start_s": got["start_s"],
                            "launch_to_first_step_s": got["start_s"] + got["logprobs_s"][0] + got["train_s"][0],
                            "weights_in_memory_before": resident, "parameters": got["parameters"],
                            "train_s": got["train_s"], "loss": got["loss"], "grad_norm": got["grad_norm"]}
            print(rows, json.dumps(result[rows]), flush=True)
        pathlib.Path(args.out).write_text(json.dumps(result, indent=1))  # kept when the peer fails
        if args.peer:
            result["peer"] = peer(args)
            print("peer", json.dumps(result["peer"]), flush=True)
            for rows in rows_wanted:
                result[rows]["times_peer"] = result[rows]["tokens_per_second_per_gpu"] / result["peer"][
                    "tokens_per_second_per_gpu"]
                print(rows, "times the peer:", round(result[rows]["times_peer"], 3), flush=True)
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    return 0 if result["checks"]["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
