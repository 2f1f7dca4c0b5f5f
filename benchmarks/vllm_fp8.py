#!/usr/bin/env python3
"""GRPO with rollouts of a real vLLM server in FP8: weights quantised here reach it, in blocks of 128 x 128, and are
read back and compared bit for bit.

    VLLM_PYTHON -B benchmarks/vllm_fp8.py --build build/cuda --out RESULT.json [--attach] [--transport disk|ipc|nccl]
        [--model blocks] [--kv-cache-dtype fp8] [--deep-gemm] [--powers] [--bf16-layers 1] [--left-out o_proj]
        [--compiled] [--logs FOLDER] [--steps 3] [--precision fp8|bfloat16] [--device cuda] [key=value ...]

The run starts its server by itself, which is then known by its log alone; with --attach there is one already, of the
same model quantised by this script, which stays behind and tells its weights: those of the run's last checkpoint,
quantised by LibTorch's own cast. Without --transport the run chooses it.

How far rollouts and training may disagree follows from FP8 itself: transformers evaluates the checkpoint in fp32 with
and without the same casts of weights, inputs, and keys and values. token_mult_prob_error has to be below
1 + 2 (theirs - 1) + BF16: the casts are those of other tokens. Weights of the start are as far off as "stale" says.
Exits with 1 when a check does not hold.

Needs the Python of vLLM's environment (torch, transformers, safetensors, vllm). --precision bfloat16 --device cpu tries
the script on a CPU, without FP8.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from grpo_step import write_prompts, write_tokenizer
from train_step import add_model_arguments, make_model, make_small_model, model_config, weights_of
from vllm_refit import ask, compare_weights, config_of, server, tensors_of, train

BLOCK, LARGEST = 128, 448.0  # of e4m3
BF16 = 0.02  # what two bf16 passes of such models differ by (docs/performance.md: 1.0192 at most)


def in_fp8(args, name):
    """Whether a server holds this weight in FP8."""
    found = re.match(r"model\.layers\.(\d+)\..*_proj\.weight$", name)
    return bool(found) and args.precision == "fp8" and int(found[1]) < args.layers_held - args.bf16_layers and not any(
        word in name for word in args.left_out)


def cast_blocks(weight, powers):
    """e4m3 and a scale a block, whole blocks alone: NeMo-RL's cast."""
    import torch
    rows, columns = (size // BLOCK for size in weight.shape)
    blocks = weight.float().reshape(rows, BLOCK, columns, BLOCK)
    largest = blocks.abs().amax(dim=(1, 3))
    if powers:
        mantissa, exponent = torch.frexp(largest / LARGEST)
        factor = torch.ldexp(torch.ones_like(largest), -(exponent - (mantissa == 0.5).int()))
    else:
        factor = LARGEST / largest
    factor = torch.where(largest == 0, torch.ones_like(factor), factor)
    values = (blocks * factor[:, None, :, None]).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return values.reshape(weight.shape), 1 / factor


def quantised(args, folder):
    """A model's tensors by name as a server is sent them: from bf16, in which the policy computes."""
    import torch
    result = {}
    for name, value in tensors_of(folder):
        value = value.to(torch.bfloat16)
        if not in_fp8(args, name):
            result[name] = value
            continue
        result[name], result[name + "_scale_inv"] = cast_blocks(value, args.powers)
    return result


def quantised_model(args, model, folder):
    """What a server that is attached starts from."""
    from safetensors.torch import save_file
    folder.mkdir()
    save_file(quantised(args, model), folder / "model.safetensors")
    shutil.copy(model / "config.json", folder)
    return folder


def quantization_config(args, model):
    ignored = [name.removesuffix(".weight") for name, _ in tensors_of(model)
               if re.search(r"layers\..*_proj\.weight$", name) and not in_fp8(args, name)]
    config = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
              "weight_block_size": [BLOCK, BLOCK]}
    return config | ({"ignored_layers": ignored} if ignored else {})


def server_arguments(args, model):
    """Of a server that is attached, as the bridge starts its own."""
    words = ["--dtype", "bfloat16", "--kv-cache-dtype", args.kv_cache_dtype,
             *([] if args.compiled else ["--enforce-eager"])]
    if args.precision == "fp8":
        words += ["--quantization", "fp8", "--hf-overrides",
                  json.dumps({"quantization_config": quantization_config(args, model)})]
    if args.device == "cuda":
        words += ["--kv-cache-memory-bytes", str(args.kv_cache_bytes)]
    return shlex.join(words)


def run_config(args, model, folder, url):
    config = config_of(args, model, folder, url)
    config["loss_fn"]["use_importance_sampling_correction"] = True
    config["cluster"]["device"] = args.device
    config["policy"]["precision"] = "bfloat16"
    generation = config["policy"]["generation"]
    if not args.transport:
        del generation["refit_transport"]
    cfg = generation["vllm_cfg"]
    cfg.update(precision=args.precision, startup_timeout_s=args.timeout, lost_timeout_s=args.timeout)
    if args.precision == "fp8":
        cfg.update(use_deep_gemm=args.deep_gemm, num_last_layers_in_bf16=args.bf16_layers,
                   quantization_ignored_layer_kws=args.left_out, pow2_weight_scaling_factors=args.powers)
    if url:
        return config
    del cfg["server_urls"]
    cfg.update(server_command=[sys.executable, "-m", "vllm.entrypoints.openai.api_server"],
               server_log_dir=str(folder / "servers"), kv_cache_dtype=args.kv_cache_dtype,
               enforce_eager=not args.compiled, gpu_memory_utilization=args.server_memory)
    generation["vllm_kwargs"] = {"tokenizer": str(folder)}
    if args.device == "cuda":
        generation["vllm_kwargs"]["kv_cache_memory_bytes"] = args.kv_cache_bytes
    return config


def log_probs(args, folder, weights, casts):
    """Of random tokens, by transformers in fp32. `casts`: of what linears and attention read, as the server's."""
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to(args.device).eval()

    def cast_rows(module, inputs):
        rows = inputs[0].unflatten(-1, (-1, BLOCK))
        scale = rows.abs().amax(-1, keepdim=True).clamp(min=1e-10) / LARGEST
        return (((rows / scale).to(torch.float8_e4m3fn).float() * scale).flatten(-2),)

    def cast_keys(module, inputs, output):
        return output.clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).float()

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = weights[name].to(args.device).float()
            scale = weights.get(name + "_scale_inv")
            if scale is not None:
                value *= scale.to(args.device).repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
            parameter.copy_(value)
        for name, module in model.named_modules():
            if casts and name + ".weight_scale_inv" in weights:
                module.register_forward_pre_hook(cast_rows)
            if casts and args.kv_cache_dtype == "fp8" and name.endswith(("q_proj", "k_proj", "v_proj")):
                module.register_forward_hook(cast_keys)
        tokens = torch.randint(2, 60, (8, 96), generator=torch.Generator().manual_seed(5)).to(args.device)
        logits = model(tokens).logits[:, :-1].log_softmax(-1)
        return logits.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def predicted_error(args, model, checkpoint):
    """token_mult_prob_error of the casts alone, and that of a server which has kept the weights of the start."""
    import torch
    plain = {name: value.to(torch.bfloat16) for name, value in tensors_of(checkpoint)}
    exact = log_probs(args, checkpoint, plain, False)
    error = lambda other: (other - exact).abs().exp().mean().item()
    return {"casts": error(log_probs(args, checkpoint, quantised(args, checkpoint), True)),
            "stale": error(log_probs(args, checkpoint, quantised(args, model), True))}


def said(log):
    """What a server's log tells of its form."""
    found = lambda pattern: sorted(set(re.findall(pattern, log)))
    return {"quantization": found(r"quantization=(\w+)"), "kv_cache_dtype": found(r"kv_cache_dtype=(\w+)"),
            "kernels": found(r"Selected (\w+) for Fp8LinearMethod"),
            "attention": found(r"Using (\w+) attention backend"),
            "reload_s": re.findall(r"Reloading and processing weights took ([\d.]+) seconds", log),
            "doubts": found(r"((?:Failed to load weights|not loaded from checkpoint)[^\n]{0,120})")}


def judge(args, result):
    """The checks by name."""
    errors = result["token_mult_prob_error"]
    bound = 1 + 2 * (result["predicted"]["casts"] - 1) + BF16
    result["bound"] = bound
    checks = {"steps": len(errors) == args.steps and all(math.isfinite(error) for error in errors),
              "agrees": bool(errors) and max(errors) <= bound, "tells_stale": result["predicted"]["stale"] > bound,
              "refits": len(result["refit_s"]) >= args.steps}
    if args.precision == "fp8":
        checks["in_fp8"] = result["server"]["quantization"] == ["fp8"]
    if args.kv_cache_dtype != "auto":
        checks["keys_in_fp8"] = any(kind.startswith("fp8") for kind in result["server"]["kv_cache_dtype"])
    if args.attach:
        weights = result["weights"]
        checks["weights_equal"] = weights["equal"] > 0 and not weights["different"]
        checks["weights_changed"] = weights["changed_since_the_start"] > 0
        checks["weights_in_fp8"] = weights["dtypes"].get("float8_e4m3fn", 0) == result["fp8_matrices"]
    return checks


def fused_matrices(args, model):
    """How many a server holds in FP8: queries, keys and values are one, and so are gate and up."""
    return sum(in_fp8(args, name) for name, _ in tensors_of(model)
               if name.endswith(("q_proj.weight", "o_proj.weight", "gate_proj.weight", "down_proj.weight")))


def measure(args, model, folder, result):
    with contextlib.ExitStack() as stack:
        stack.callback(keep_logs, args, folder)
        url = ""
        if args.attach:
            args.server_args = server_arguments(args, model)
            start = quantised_model(args, model, folder / "quantised") if args.precision == "fp8" else model
            args.start = start
            url, result["server_start_s"] = stack.enter_context(server(args, start, folder))
        checkpoint = train(args, folder, run_config(args, model, folder, url), result)
        if args.attach:
            result["weights"] = compare_weights(args, url, quantised(args, checkpoint), folder)
            result["version"] = ask(url + "/version")["version"]
        result["fp8_matrices"] = fused_matrices(args, model)
        result["server"] = said("".join(path.read_text() for path in server_logs(folder)))
        result["predicted"] = predicted_error(args, model, checkpoint)


def server_logs(folder):
    return [path for path in (*folder.glob("server.log"), *folder.glob("servers/*.log"))]


def keep_logs(args, folder):
    """The ends of all logs, a file, for who sees no more of the machine than --logs."""
    if not args.logs:
        return
    args.logs.mkdir(parents=True, exist_ok=True)
    name = pathlib.Path(args.out).stem
    with open(args.logs / f"{name}.log", "w") as file:
        for path in (*server_logs(folder), *(folder / "log").rglob("worker-*.log")):
            file.write(f"==> {path.name}\n{path.read_text(errors='replace')[-100000:]}\n")


def ended(*_):
    raise RuntimeError("it was ended from outside")  # servers end, and what is known is written


def main():
    parser = argparse.ArgumentParser()
    add_model_arguments(parser, "blocks", 1)
    parser.add_argument("--attach", action="store_true", help="to a server that this script starts")
    parser.add_argument("--transport", default="", choices=("", "disk", "ipc", "nccl"))
    parser.add_argument("--precision", default="fp8", choices=("fp8", "bfloat16"), help="of the server")
    parser.add_argument("--kv-cache-dtype", default="auto", choices=("auto", "fp8"))
    parser.add_argument("--deep-gemm", action="store_true", help="vllm_cfg.use_deep_gemm; else vLLM is kept from it")
    parser.add_argument("--powers", action="store_true", help="scales are powers of two")
    parser.add_argument("--bf16-layers", type=int, default=0, help="last layers that stay in bf16")
    parser.add_argument("--left-out", type=lambda text: text.split(","), default=[],
                        help="parts of names that stay in bf16, as o_proj,down_proj")
    parser.add_argument("--compiled", action="store_true", help="CUDA graphs; else --enforce-eager")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--server-gpu", type=int, default=0)
    parser.add_argument("--server-memory", type=float, default=0.1, help="part of its GPU's memory")
    parser.add_argument("--kv-cache-bytes", type=int, default=1 << 30, help="fixed: a server beside another sees its "
                        "memory come and go")
    parser.add_argument("--logs", type=pathlib.Path, help="folder for what servers and workers have logged")
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("override", nargs="*")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, ended)
    config = model_config(args)
    args.layers_held = config["num_hidden_layers"]
    # vLLM's default is DeepGEMM where it has it, with weights quantised again to powers of two: not what it was sent.
    os.environ.update(VLLM_USE_DEEP_GEMM=str(int(args.deep_gemm)), VLLM_USE_DEEP_GEMM_E8M0="0")
    if args.device == "cpu":
        os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind")
    keys = ("model", "attach", "transport", "precision", "kv_cache_dtype", "deep_gemm", "powers", "bf16_layers",
            "left_out", "compiled", "steps")
    result = {key: getattr(args, key) for key in keys}
    with tempfile.TemporaryDirectory() as temporary, weights_of(
            args, config, make_model if args.device == "cuda" else make_small_model) as model:
        folder, args.start = pathlib.Path(temporary), model  # start: what the server has at first
        write_tokenizer(folder, config["vocab_size"])
        write_prompts(folder, 64, 20, 60)
        try:
            measure(args, model, folder, result)
            result["checks"] = judge(args, result)
        except Exception as error:
            result["error"] = str(error)[-4000:]
    result["ok"] = "error" not in result and all(result["checks"].values())
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
