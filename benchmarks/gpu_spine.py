#!/usr/bin/env python3
"""The spine on GPUs, checked against the CPU in the same run: score, quickstart, SmolLM2 GRPO, FSDP2 on several GPUs.

usage: gpu_spine.py --hexad build/cuda/bin/hexad --model SMOLLM2_DIR --out RESULT.json [--only score,quickstart,...]

Standard library only. Every part prints what it saw and what it wanted; the exit status is the number of parts that
did not hold. Run from the repository root.
"""
import argparse, array, json, math, os, pathlib, struct, subprocess, sys, tempfile, time

# Bounds. fp32 on both sides: other summation orders only. bf16: 8 bits of mantissa in every activation.
FP32_LOGPROB = 1e-3        # max |difference| of a token's log-prob, GPU against CPU
# NeMo-RL's token_mult_prob_error of real text, bf16 GPU against fp32 CPU: both roundings count
BF16_MULT_PROB_ERROR = 1.05
# the same of a step's rollouts, generator against backend, each with its own bf16 roundings
BF16_ROLLOUT_ERROR = 1.02
RANKS_RELATIVE = 1e-5      # per tensor ||a - b|| / ||b|| of weights after SGD, 2 GPUs against 1


def hexad(args, **kw):
    t = time.time()
    r = subprocess.run([options.hexad, *args], capture_output=True, text=True, **kw)
    if r.returncode != 0:
        raise RuntimeError(
            f"hexad {' '.join(args)}: exit {r.returncode}: {(r.stderr.strip() or r.stdout.strip())[-600:]}")
    return r.stdout, time.time() - t


def metrics(run_dir):
    path = next(pathlib.Path(run_dir).rglob("metrics.jsonl"))
    return [json.loads(line) for line in path.read_text().splitlines()]


def train(config, name, *overrides):
    folder = work / name
    out, seconds = hexad(["train", config, f"++logger.log_dir={folder}/log",
                          f"++checkpointing.checkpoint_dir={folder}/ck", *overrides])
    (folder / "out.txt").write_text(out)
    return metrics(folder / "log"), seconds


def validation(lines):
    return [round(l["validation/accuracy"], 4) for l in lines if "validation/accuracy" in l]


def text_rows():
    """10,000 tokens of this repository's own prose, in rows of at most 256 tokens."""
    text = work / "text.jsonl"
    prose = "".join(pathlib.Path(p).read_text() for p in ("LICENSE", "docs/config.md"))
    text.write_text(json.dumps({"text": prose}) + "\n")
    out, _ = hexad(["tokenize", options.model, "--input", str(text)])
    ids = json.loads(out.splitlines()[0])["token_ids"][:10000]
    rows = work / "rows.jsonl"
    rows.write_text("".join(json.dumps({"token_ids": ids[i:i + 256]}) + "\n" for i in range(0, len(ids), 256)))
    return rows, len(ids)


def score(rows, *overrides):
    out, seconds = hexad(["score", options.model, "--input", str(rows), *overrides])
    return [x for line in out.splitlines() if line.startswith("{") for x in json.loads(line)["logprobs"]], seconds


def part_score():
    rows, tokens = text_rows()
    cpu, cpu_s = score(rows, "policy.precision=float32", "++cluster.device=cpu")
    fp32, gpu_s = score(rows, "policy.precision=float32", "++cluster.device=cuda")
    bf16, _ = score(rows, "policy.precision=bfloat16", "++cluster.device=cuda")
    worst = max(abs(a - b) for a, b in zip(cpu, fp32))
    mult = sum(math.exp(abs(a - b)) for a, b in zip(cpu, bf16)) / len(cpu)
    ok = len(cpu) == len(fp32) == len(bf16) == tokens and worst <= FP32_LOGPROB and mult <= BF16_MULT_PROB_ERROR
    return ok, {"tokens": tokens, "fp32_max_abs_diff": worst, "bf16_token_mult_prob_error": mult, "cpu_s": cpu_s,
                "gpu_s": gpu_s}


def part_quickstart():
    cpu, cpu_s = train("configs/quickstart.yaml", "quick_cpu", "++cluster.device=cpu")
    gpu, gpu_s = train("configs/quickstart.yaml", "quick_gpu", "++cluster.device=cuda")
    a, b = validation(cpu), validation(gpu)
    first = lambda lines: next(l for l in lines if "train/loss" in l)
    loss = abs(first(cpu)["train/loss"] - first(gpu)["train/loss"])
    ok = a[0] < 0.2 and b[0] < 0.2 and a[-1] >= 0.9 and b[-1] >= 0.9 and loss < 1e-4
    return ok, {"cpu_validation": a, "gpu_validation": b, "first_loss_abs_diff": loss, "cpu_s": cpu_s, "gpu_s": gpu_s}


def part_smollm2():
    result, ok = {}, True
    for precision in ("float32", "bfloat16"):
        lines, seconds = train("configs/smollm2_arithmetic.yaml", f"smollm2_{precision}",
                               f"++policy.model_name={options.model}", "++cluster.device=cuda",
                               f"policy.precision={precision}", "checkpointing.enabled=false", *options.override)
        steps = [l for l in lines if "train/reward" in l]
        error = max(l["train/token_mult_prob_error"] for l in steps)
        seen = validation(lines)
        ok = ok and seen[-1] >= 0.6 and error < BF16_ROLLOUT_ERROR
        result[precision] = {"validation": seen, "max_token_mult_prob_error": error, "seconds": seconds,
                             "median_step_s": sorted(l["timing/train/total_step_time"] for l in steps)[len(steps) // 2]}
    return ok, result


def tensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, array.array("f", raw[8 + size + begin:8 + size + end])


def part_ranks():
    """Two GPUs against one: same rollouts, hence same loss and gradients; SGD keeps differences as they are."""
    runs = {}
    for gpus in (1, 2):
        runs[gpus], _ = train("configs/quickstart.yaml", f"ranks_{gpus}", "++cluster.device=cuda",
                              f"++cluster.gpus_per_node={gpus}", "grpo.max_num_steps=3",
                              "policy.optimizer.name=torch.optim.SGD", "policy.optimizer.kwargs.lr=0.05",
                              "~policy.optimizer.kwargs.betas", "~policy.optimizer.kwargs.eps",
                              "checkpointing.save_period=3",
                              "grpo.val_at_start=false", "grpo.val_at_end=false")
    seen = {}
    for key in ("train/loss", "train/grad_norm"):
        a, b = ([l[key] for l in runs[g] if key in l] for g in (1, 2))
        seen[key] = max(abs(x - y) / max(abs(x), 1e-3) for x, y in zip(a, b))
    worst = 0.0
    files = [next((work / f"ranks_{g}" / "ck").rglob("policy/weights/model.safetensors")) for g in (1, 2)]
    for (name, a), (other, b) in zip(tensors(files[0]), tensors(files[1])):
        assert name == other and len(a) == len(b)
        worst = max(worst, math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(x * x for x in a)))
    rows, _ = text_rows()
    one, _ = score(rows, "policy.precision=float32", "++cluster.device=cuda")
    two, _ = score(rows, "policy.precision=float32", "++cluster.device=cuda", "++cluster.gpus_per_node=2")
    seen.update(weights_relative=worst, score_max_abs_diff=max(abs(x - y) for x, y in zip(one, two)))
    ok = worst <= RANKS_RELATIVE and seen["train/loss"] < 1e-4 and seen["train/grad_norm"] < 1e-4 and seen[
        "score_max_abs_diff"] < 1e-4
    return ok, seen


def part_layouts():
    """megatron over two GPUs against dtensor on one: same rollouts and data, hence the same loss and gradient norm."""
    common = ["++cluster.device=cuda", "grpo.max_num_steps=3", "checkpointing.enabled=false", "grpo.val_at_start=false",
              "grpo.val_at_end=false"]
    megatron = "++policy.megatron_cfg."
    layouts = {"dp2": {}, "tp2": {"tensor_model_parallel_size": 2},
               "tp2_sp": {"tensor_model_parallel_size": 2, "sequence_parallel": "true"},
               "pp2": {"pipeline_model_parallel_size": 2}, "cp2": {"context_parallel_size": 2}}
    wanted, _ = train("configs/quickstart.yaml", "layout_one", "policy.make_sequence_length_divisible_by=4", *common)
    seen, ok = {}, True
    for name, sizes in layouts.items():
        got, seconds = train("configs/quickstart.yaml", f"layout_{name}", *common, "++cluster.gpus_per_node=2",
                             megatron + "enabled=true",
                             "policy.make_sequence_length_divisible_by=4",
                             *[f"{megatron}{key}={value}" for key, value in sizes.items()])
        worst = {}
        for key in ("train/loss", "train/grad_norm"):
            a, b = ([l[key] for l in lines if key in l] for lines in (wanted, got))
            worst[key] = max(abs(x - y) / max(abs(x), 1e-3) for x,
                             y in zip(a, b)) if len(a) == len(b) == 3 else math.inf
        ok = ok and max(worst.values()) < 1e-3
        seen[name] = {**worst, "seconds": seconds}
    return ok, seen


parts = {"layouts": part_layouts, "score": part_score, "quickstart": part_quickstart, "smollm2": part_smollm2,
         "ranks": part_ranks}
parser = argparse.ArgumentParser()
parser.add_argument("--hexad", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--only", default="score,quickstart,smollm2")
parser.add_argument("--override", action="append", default=[], help="key=value for the SmolLM2 run")
options = parser.parse_args()
work = pathlib.Path(tempfile.mkdtemp(prefix="gpu_spine_"))
report, failed = {}, 0
for name in options.only.split(","):
    try:
        ok, seen = parts[name]()
    except Exception as error:  # one part's end is not the others'
        ok, seen = False, {"error": str(error)}
    failed += not ok
    report[name] = {"holds": ok, **seen}
    print(name, "holds" if ok else "DOES NOT HOLD", json.dumps(seen), flush=True)
    pathlib.Path(options.out).write_text(json.dumps(report, indent=1))
sys.exit(failed)
