"""Processes of benchmarks/cpu_table.py: ours and peers', their time and memory."""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOGPROB = 1e-3  # log-probs of fp32 against fp32: other summation orders


def median(runs, key):
    return statistics.median(run[key] for run in runs)


class Peer:
    """benchmarks/cpu_peer.py, which computes while it is asked to and sleeps while it is not."""

    def __init__(self, args, python, name, *options):
        command = [
            str(python),
            str(ROOT / "benchmarks/cpu_peer.py"),
            name,
            str(args.model),
            "--threads",
            str(args.threads),
            *options,
        ]
        self.log = open(args.out / f"peer-{name}.log", "w")
        environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        self.ready = self.receive()

    def receive(self):
        for line in self.process.stdout:
            if line.startswith("RESULT "):
                return json.loads(line[len("RESULT ") :])
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
                    children[int(open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)[1].split()[1])].append(
                        int(entry.name)
                    )
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
    """Wall and processor seconds of a process and those that it waited for, its peaks of memory, what it printed."""
    start = time.time()
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    watch = MemoryWatch(process.pid)
    watch.start()
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    result = {
        "started": start,
        "seconds": time.time() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": watch.total(),
        "output": output,
    }
    if process.returncode:
        raise RuntimeError(f"{command[0]} {command[1]}: exit {process.returncode}: {output[-2000:]}")
    return result


def tokenized(args, name, records):
    """Token ids of records with text or messages."""
    file = args.out / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = subprocess.run(
        [str(args.build / "bin/hexad"), "tokenize", str(args.model), "--input", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line)["token_ids"] for line in done.stdout.splitlines()]


def grpo_run(args, folder, steps, *overrides):
    """hexad train on configs/smollm2_arithmetic.yaml, and its lines of metrics."""
    keys = [
        f"policy.model_name={args.model}",
        f"grpo.max_num_steps={steps}",
        "grpo.val_at_start=false",
        "grpo.val_at_end=false",
        "grpo.val_period=0",
        "checkpointing.enabled=false",
        f"logger.log_dir={folder}",
        "policy.optimizer.kwargs.lr=1e-6",
        *overrides,
    ]
    done = run(
        [args.build / "bin/hexad", "train", "configs/smollm2_arithmetic.yaml", *keys],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": str(args.threads)},
    )
    newest = max(pathlib.Path(folder).glob("exp_*"), key=lambda path: path.name)
    return done, [json.loads(line) for line in (newest / "metrics.jsonl").read_text().splitlines()], newest
