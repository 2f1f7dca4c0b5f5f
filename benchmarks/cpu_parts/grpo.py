"""Part of benchmarks/cpu_table.py: whole GRPO steps beside TRL."""

import json
import statistics

from cpu_parts.processes import LOGPROB, Peer, grpo_run, median

ROLLOUT_ERROR = 1.001  # token_mult_prob_error


def grpo(args):
    """Groups of samples of one-digit addition a step, at most 16 tokens each, from the model as it is: the learning
    rate moves it hardly."""
    ours, theirs = [], []
    options = [
        "--prompts",
        args.prompts,
        "--samples",
        args.samples,
        "--micro-batch",
        args.trl_micro_batch,
        "--steps",
        args.repeats + 1,
        "--scratch",
        args.out / "trl",
    ]
    keys = [
        f"grpo.num_prompts_per_step={args.prompts}",
        f"grpo.num_generations_per_prompt={args.samples}",
        f"policy.train_global_batch_size={args.prompts * args.samples}",
        "policy.sequence_packing.train_mb_tokens=4096",
    ]
    with Peer(args, args.peers["python"], "trl", *map(str, options)) as peer:
        peer.ask()  # warms up
        for repeat in range(args.repeats):
            done, lines, folder = grpo_run(args, args.out / "grpo", 2, *keys)
            ours.append(
                {
                    "seconds": lines[-1]["timing/train/total_step_time"],
                    "first_seconds": lines[0]["timing/train/total_step_time"],
                    "run_cpu_seconds": done["cpu_seconds"],
                    "peak_bytes": done["peak_bytes"],
                    "timing": {key: value for key, value in lines[-1].items() if key.startswith("timing/train/")},
                }
                | {
                    name: lines[-1]["train/" + key]
                    for name, key in (
                        ("reward", "reward"),
                        ("response_tokens", "mean_gen_tokens_per_sample"),
                        ("rollout_error", "token_mult_prob_error"),
                        ("loss", "loss"),
                        ("grad_norm", "grad_norm"),
                    )
                }
            )
            theirs.append(peer.ask())
            if repeat == 0:
                samples = [json.loads(line) for line in (folder / "train_data_step1.jsonl").read_text().splitlines()]
    with Peer(args, args.peers["python"], "transformers") as peer:
        reference = peer.ask("logprobs", rows=[sample["token_ids"] for sample in samples])["logprobs"]
    errors = [
        abs(a - b)
        for row, sample in zip(reference, samples, strict=True)
        for a, b, mask in zip(row, sample["generation_logprobs"], sample["token_loss_mask"], strict=True)
        if mask
    ]
    length = [statistics.mean(run["response_tokens"] for run in side) for side in (ours, theirs)]
    check = {
        "rollout_logprob_error": max(errors),
        "token_mult_prob_error": max(run["rollout_error"] for run in ours),
        "response_tokens": length,
        "reward": [statistics.mean(run["reward"] for run in side) for side in (ours, theirs)],
    }
    # Samples of one model: a response has a standard deviation of about four tokens.
    far = 4 * 4 * (2 / (args.repeats * args.prompts * args.samples)) ** 0.5
    ok = (
        check["rollout_logprob_error"] <= LOGPROB
        and check["token_mult_prob_error"] <= ROLLOUT_ERROR
        and abs(length[0] - length[1]) <= far
    )
    return {
        "ours": ours,
        "trl": theirs,
        "work": [args.prompts, args.samples, args.trl_micro_batch],
        "check": check,
        "ok": ok,
    }


def grpo_rows(result):
    ours, theirs = median(result["ours"], "seconds"), median(result["trl"], "seconds")
    memory, their_memory = (max(run["peak_bytes"] for run in result[side]) / 2**30 for side in ("ours", "trl"))
    return [
        (
            "GRPO step, {} × {}".format(*result["work"]),
            f"{ours:.1f} s",
            f"TRL {theirs:.1f} s: {ours / theirs:.2f} of its time",
            "≤ 0.5",
            ours <= 0.5 * theirs,
        ),
        (
            "peak memory of these runs",
            f"{memory:.2f} GiB",
            f"TRL {their_memory:.2f} GiB",
            "≤ TRL's",
            memory <= their_memory,
        ),
    ]
