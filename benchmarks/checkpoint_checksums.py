#!/usr/bin/env python3
"""What the checksums of checkpoints cost: saves of 1 GB with and without them, and the steps beside a save.

  benchmarks/checkpoint_checksums.py [--hexad build/dev/bin/hexad] [--dir results/checksums] [--saves 5]

Trains configs/sft_quickstart.yaml with a model of 85 million parameters (in fp32 0.34 GB of weights and 0.68 of
moments) and saves every step. Prints the medians of `timing/train/checkpointing` where a save ends before the next step
(checkpointing.is_async=false), and of `timing/train/policy_training` where it goes on beside it. `--dir` has to lie on
a disk that fsync reaches; its runs are removed.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess

MODEL = ("{hidden_size: 768, intermediate_size: 2048, num_hidden_layers: 12, num_attention_heads: 12, "
         "num_key_value_heads: 12, head_dim: 64}")


def run(options, checksums, is_async):
    """The lines of metrics.jsonl of one run, without its first step."""
    folder = pathlib.Path(options.dir)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [options.hexad, "train", "configs/sft_quickstart.yaml", f"++policy.hf_config_overrides={MODEL}",
         f"sft.max_num_steps={options.saves + 1}", "sft.val_period=0", "sft.val_at_start=false", "sft.val_at_end=false",
         "checkpointing.save_period=1", "checkpointing.keep_top_k=1", "checkpointing.metric_name=null",
         f"checkpointing.checkpoint_dir={folder / 'checkpoints'}", f"logger.log_dir={folder / 'logs'}",
         f"++checkpointing.checksums={str(checksums).lower()}", f"++checkpointing.is_async={str(is_async).lower()}"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    step = max((folder / "checkpoints").glob("step_*"))
    size = sum(file.stat().st_size for file in step.rglob("*") if file.is_file())
    lines = [json.loads(line) for line in (folder / "logs/exp_001/metrics.jsonl").read_text().splitlines()]
    shutil.rmtree(folder)
    return size, [line for line in lines if line["step"] > 1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hexad", default="build/dev/bin/hexad")
    parser.add_argument("--dir", default="results/checksums")
    parser.add_argument("--saves", type=int, default=5)
    options = parser.parse_args()
    for is_async, name in ((False, "timing/train/checkpointing"), (True, "timing/train/policy_training")):
        seconds = {}
        for checksums in 4 * (False, True):  # in turn: a disk has its moods
            size, lines = run(options, checksums, is_async)
            seconds.setdefault(checksums, []).extend(line[name] for line in lines if name in line)
        without, with_sums = (statistics.median(seconds[each]) for each in (False, True))
        print(f"{name:30} {size / 1e9:.2f} GB: without {without:.3f} s, with {with_sums:.3f} s, "
              f"{100 * (with_sums / without - 1):+.1f} %")
        for checksums, all_seconds in seconds.items():
            print(f"  {'with' if checksums else 'without':7} {' '.join(f'{each:.2f}' for each in all_seconds)}")


if __name__ == "__main__":
    main()
