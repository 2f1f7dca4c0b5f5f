#!/usr/bin/env python3
"""Time of a training step under TP2, PP2, CP2 and DP2 of the megatron backend on a CPU, beside one rank on one core and
on two: the same model and the same rollouts, so the work is fixed.

    benchmarks/layout_steps.py [--build build/dev] [--steps 6]

Prints one JSON object a layout. `seconds` is the median of policy_training over the steps after the first. `limits`
counts what keeps two ranks from halving the step: bytes that a rank sends (formulas), idle slots of the schedule, work
that both ranks do. Exits with 1 when a layout's loss or gradient norm in the first step is not one rank's to 1e-4.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HIDDEN, LAYERS, FFN, HEADS, KV_HEADS, HEAD_DIM = 256, 8, 768, 8, 4, 32
SEQUENCES, LENGTH, MICRO_BATCH_TOKENS = 256, 16, 1024


def make_model(source, target):
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    config.update(hidden_size=HIDDEN, num_hidden_layers=LAYERS, intermediate_size=FFN, num_attention_heads=HEADS,
                  num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM)
    (target / "config.json").write_text(json.dumps(config))
    return config


def parameters(config):
    attention = HIDDEN * HEAD_DIM * (2 * HEADS + 2 * KV_HEADS)
    layer = attention + 3 * HIDDEN * FFN + 2 * HIDDEN
    embeddings = config["vocab_size"] * HIDDEN * (1 if config.get("tie_word_embeddings") else 2)
    return LAYERS * layer + embeddings + HIDDEN


def limits(layout, tokens, micro_batches, config):
    """What a rank of two sends in a step, in bytes; idle over busy time; the part of the work that both ranks do."""
    activations, kv = 4 * tokens * HIDDEN, 4 * tokens * 2 * KV_HEADS * HEAD_DIM
    sent = {"tp": (4 * LAYERS + 2) * activations,  # all-reduces of two ranks: each sends what it has once
            "pp": activations,                     # hidden states or their gradients, one way
            "cp": LAYERS * 3 * kv // 2 + 4 * parameters(config),
            "dp": 4 * parameters(config)}          # half the gradients, then half the weights, both ways
    return {"bytes_sent": sent.get(layout, 0),
            "bubble": 1 / micro_batches if layout == "pp" else 0,
            "duplicated": {"tp": "norms, residuals, optimizer state sharded by the vocabulary alone"}.get(layout, "")}


def run(args, layout, keys, ranks, cores, model, folder):
    logs = folder / f"{layout}_{cores}"
    command = ["taskset", "-c", ",".join(map(str, range(cores))), str(args.build / "bin" / "hexad"), "train",
               "configs/quickstart.yaml", f"policy.model_name={model}", "policy.megatron_cfg.enabled=true",
               f"cluster.gpus_per_node={ranks}", "cluster.device=cpu", f"logger.log_dir={logs}",
               "checkpointing.enabled=false", f"grpo.max_num_steps={args.steps}", "grpo.val_period=0",
               "grpo.val_at_start=false", "grpo.val_at_end=false", f"grpo.num_prompts_per_step={SEQUENCES // 16}",
               f"policy.train_global_batch_size={SEQUENCES}", f"policy.train_micro_batch_size={SEQUENCES}",
               f"policy.sequence_packing.train_mb_tokens={MICRO_BATCH_TOKENS}",
               "policy.make_sequence_length_divisible_by=4"]
    command += [f"policy.megatron_cfg.{key}={value}" for key, value in keys.items()]
    environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{layout}: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    steps = [json.loads(line) for line in next(logs.glob("**/metrics.jsonl")).read_text().splitlines()]
    return [step for step in steps if any("policy_training" in name for name in step)]


def value(step, name):
    return next(number for key, number in step.items() if key.split("/")[-1] == name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/dev"))
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    layouts = [("one", {}, 1, 1), ("one", {}, 1, 2), ("tp", {"tensor_model_parallel_size": 2}, 2, 2),
               ("pp", {"pipeline_model_parallel_size": 2}, 2, 2), ("cp", {"context_parallel_size": 2}, 2, 2),
               ("dp", {}, 2, 2)]
    equal, base = True, None
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        config = make_model(pathlib.Path("configs/quickstart_model"), folder / "model")
        for layout, keys, ranks, cores in layouts:
            steps = run(args, layout, keys, ranks, cores, folder / "model", folder)
            first = {name: value(steps[0], name) for name in ("loss", "grad_norm")}
            base = base or first
            same = all(abs(first[name] - base[name]) <= 1e-4 * max(abs(base[name]), 1e-3) for name in base)
            equal &= same
            seconds = statistics.median(value(step, "policy_training") for step in steps[1:])
            tokens = SEQUENCES * LENGTH
            print(json.dumps({"layout": layout, "ranks": ranks, "cores": cores, "threads_per_rank": cores // ranks,
                              "seconds": round(seconds, 4), **first, "equal": same,
                              "limits": limits(layout, tokens, -(-tokens // MICRO_BATCH_TOKENS), config)}), flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
