"""Part of benchmarks/cpu_table.py: training steps beside transformers."""

import array
import json
import os
import statistics
import subprocess

from cpu_parts.processes import LOGPROB, ROOT, MemoryWatch, Peer, tokenized

MICRO_BATCH_ROWS = 4
RELATIVE = 1e-3  # losses and norms, fp32 against fp32
# bf16: the mean error of log-probs against fp32 in units of the peer's own, and losses and norms. On text: over random
# tokens single log-probs of either side are off by 5, and norms by their own size.
BF16_ERRORS, BF16_RELATIVE = 1.2, 0.02


def numbers(path, kind):
    values = array.array(kind)
    values.frombytes(path.read_bytes())
    return list(values)


def rows_of(values, length):
    return [values[i : i + length] for i in range(0, len(values), length)]


def write_text_ids(args, file):
    """Rows of this project's documentation."""
    pages = [{"text": path.read_text()} for path in sorted((ROOT / "docs").glob("*.md"))]
    ids = [token for page in tokenized(args, "pages.jsonl", pages) for token in page][: args.rows * args.row_length]
    if len(ids) < args.rows * args.row_length:
        raise RuntimeError(
            f"docs/*.md have {len(ids)} tokens, --rows and --row-length want {args.rows * args.row_length}: "
            "make one of them smaller"
        )
    file.write_bytes(array.array("q", ids).tobytes())


class Steps:
    """bin/train_step, which trains a step when it is asked to."""

    def __init__(self, args, save, precision):
        lengths = args.out / "lengths.json"
        lengths.write_text(json.dumps([args.row_length] * args.rows))
        keys = [
            f"policy.precision={precision}",
            "policy.sequence_packing.enabled=true",
            f"++policy.sequence_packing.train_mb_tokens={MICRO_BATCH_ROWS * args.row_length}",
            f"++policy.sequence_packing.logprob_mb_tokens={MICRO_BATCH_ROWS * args.row_length}",
            f"++policy.max_total_sequence_length={args.row_length}",
            f"policy.train_global_batch_size={args.rows}",
            "policy.max_grad_norm=1.0",
            "loss_fn.reference_policy_kl_penalty=0",
            "++policy.optimizer.kwargs.weight_decay=0.0",
        ]
        command = [
            args.build / "bin/train_step",
            args.model,
            "--hexad",
            args.build / "bin/hexad",
            "--lengths",
            lengths,
            "--wait",
            "--steps",
            args.repeats + 1,
            "--logprobs",
            1,
            "--ids",
            save.with_suffix(".text"),
            "--save",
            save,
            *keys,
        ]
        self.log = open(args.out / "train_step.log", "w")
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(args.threads)},
        )
        self.watch = MemoryWatch(self.process.pid)
        self.watch.start()

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.log.name}: train_step has ended: {open(self.log.name).read()[-1000:]}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def differences(rows, others):
    return [abs(a - b) for row, other in zip(rows, others, strict=True) for a, b in zip(row, other, strict=True)]


def training(args, precision="float32"):
    """Steps of AdamW over rows of one length, without padding, so that both train on the same tokens."""
    save, narrow = args.out / "training", precision == "bfloat16"
    write_text_ids(args, save.with_suffix(".text"))
    with Steps(args, save, precision) as steps, Peer(
        args, args.peers["python"], "transformers", *(["--autocast"] if narrow else [])
    ) as peer:
        ours = [steps.ask()]  # warms up, and wrote what it trains on
        ids, advantages = (
            rows_of(numbers(save.with_suffix(suffix), kind), args.row_length)
            for suffix, kind in ((".ids", "q"), (".advantages", "f"))
        )
        reference = peer.ask("logprobs", rows=ids)["logprobs"]
        errors = differences(reference, rows_of(numbers(save.with_suffix(".logprobs"), "f"), args.row_length))
        their_errors = differences(reference, peer.ask("logprobs", rows=ids, exact=False)["logprobs"]) if narrow else []
        work = {"rows": ids, "advantages": advantages, "micro_batch": MICRO_BATCH_ROWS, "lr": 1e-6}
        theirs = [peer.ask("train", **work)]
        for _ in range(args.repeats):
            ours.append(steps.ask())
            theirs.append(peer.ask("train", **work))
        peak = steps.watch.total()
    # The first step of each is from the same weights.
    check = {
        "largest_logprob_error": max(errors),
        "mean_logprob_errors": [statistics.mean(side) for side in (errors, their_errors) if side],
    } | {key: [side[0][key] for side in (ours, theirs)] for key in ("loss", "grad_norm")}
    agree = (
        check["mean_logprob_errors"][0] <= BF16_ERRORS * check["mean_logprob_errors"][1]
        if narrow
        else check["largest_logprob_error"] <= LOGPROB
    )
    ok = agree and all(
        abs(a - b) <= (BF16_RELATIVE if narrow else RELATIVE) * max(abs(b), 1e-2)
        for a, b in (check["loss"], check["grad_norm"])
    )
    tokens, seconds = args.rows * args.row_length, [
        [run[key] for run in side[1:]] for side, key in ((ours, "train_s"), (theirs, "seconds"))
    ]
    return {
        "ours": {"tokens_per_s": tokens / statistics.median(seconds[0]), "seconds": seconds[0], "peak_bytes": peak},
        "transformers": {
            "tokens_per_s": tokens / statistics.median(seconds[1]),
            "seconds": seconds[1],
            "cpu_seconds": [run["cpu_seconds"] for run in theirs[1:]],
        },
        "check": check,
        "precision": precision,
        "ok": ok,
    }


def training_rows(result):
    ours, theirs = result["ours"]["tokens_per_s"], result["transformers"]["tokens_per_s"]
    return [
        (
            "training, " + ("bf16" if result["precision"] == "bfloat16" else "fp32"),
            f"{ours:,.0f} tokens/s",
            f"transformers {theirs:,.0f}: {ours / theirs:.2f} ×",
            "≥ 1.2 ×",
            ours >= 1.2 * theirs,
        )
    ]
