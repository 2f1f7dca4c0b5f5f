#!/usr/bin/env python3
"""Weights from Hexad's trainer to a real vLLM server: over disk, by CUDA IPC, by NCCL. Read back and compared bit for
bit.

    VLLM_PYTHON -B benchmarks/vllm_refit.py --build build/cuda --out RESULT.json --transport ipc|nccl|disk [--model
    qwen2.5-1.5b]
        [--layers N] [--gpus 1] [--server-gpu 0] [--server-memory 0.3] [--steps 3] [--server-args=...] [key=value ...]

Starts one vLLM server, attaches a GRPO run of --steps steps on random weights at a real shape to it, and asks the
server, which stays, for the weights that it holds: those of the run's last update, which the run has also saved as a
checkpoint. Then both sides continue prompts greedily, the server and `hexad generate` (native), and every token has to
be the same wherever the two best differ by more than 0.05 in log-prob. Exits with 1 when a weight differs, or a token
does.

Needs the Python of vLLM's environment (torch, safetensors, vllm), and a GPU. The server is at 127.0.0.1. Over disk on a
CPU: `make test-peers`.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from grpo_step import write_prompts, write_tokenizer
from train_step import add_model_arguments, make_model, model_config, weights_of

MARGIN = 0.05  # of the two best log-probs, from which on the token has to be the same
OWN = ("_k_scale", "_v_scale", "_q_scale", "_prob_scale", "cos_sin_cache")  # the server's, which no checkpoint has
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def ask(url, body=None, timeout=120):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read() or "null")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def server(args, model, folder):
    """URL and seconds until it was ready, of a vLLM server that holds `model` at first."""
    port = free_port()
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--tokenizer",
               str(folder), "--host", "127.0.0.1",
               "--port", str(port), "--max-model-len", "512", "--logprobs-mode", "processed_logprobs",
               "--gpu-memory-utilization", str(args.server_memory),
               *shlex.split(args.server_args)]
    environment = dict(os.environ, VLLM_SERVER_DEV_MODE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                       CUDA_VISIBLE_DEVICES=str(args.server_gpu))
    if args.transport != "disk":
        command += ["--weight-transfer-config", json.dumps({"backend": args.transport})]
    if args.transport == "ipc":
        environment["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    started = time.monotonic()
    log = open(folder / "server.log", "w")
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            if process.poll() is not None or time.monotonic() - started > args.timeout:
                raise RuntimeError(f"the server did not start: {(folder / 'server.log').read_text()[-3000:]}")
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(url + "/health", timeout=2)
                break
            time.sleep(0.2)
        yield url, time.monotonic() - started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def config_of(args, model, folder, url):
    return {
        "grpo": {"num_prompts_per_step": 8, "num_generations_per_prompt": 4, "max_num_epochs": args.steps + 1,
                 "max_num_steps": args.steps,
                 "val_period": 0, "val_at_start": False, "val_at_end": False, "seed": 1},
        "loss_fn": {"reference_policy_kl_penalty": 0.0},
        # The server's last weights are those before the last step.
        "checkpointing": {"enabled": True, "checkpoint_dir": str(folder / "checkpoints"), "save_period": args.steps - 1,
                          "keep_top_k": None, "metric_name": None},
        "policy": {"model_name": str(model), "backend": args.backend,
                   "tokenizer": {"name": str(folder),
                                 "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}"},
                   "train_global_batch_size": 32, "max_total_sequence_length": 256, "precision": args.precision,
                   "max_grad_norm": 1.0,
                   "sequence_packing": {"enabled": True, "train_mb_tokens": 4096, "logprob_mb_tokens": 4096,
                                        "algorithm": "modified_first_fit_decreasing"},
                   "optimizer": {"name": "torch.optim.AdamW", "kwargs": {"lr": 1e-3, "weight_decay": 0.0}},
                   "scheduler": None,
                   "generation": {"backend": "vllm", "max_new_tokens": 24, "temperature": 1.0,
                                  "refit_transport": args.transport,
                                  "vllm_cfg": {"server_urls": [url]}}},
        "data": {"max_input_seq_length": 200, "shuffle": True,
                 "train": {"dataset_name": "ResponseDataset", "data_path": str(folder / "prompts.jsonl"),
                           "env_name": "token_task", "processor": "math_hf_data_processor"}},
        "env": {"token_task": {}},
        "logger": {"log_dir": str(folder / "log"), "num_val_samples_to_print": 0},
        "cluster": {"gpus_per_node": args.gpus, "num_nodes": 1, "device": "cuda"},
    }


def hexad(args, *command):
    name, words = command[0], [str(args.build / "bin" / "hexad"), *map(str, command)]
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=args.timeout)
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(
            f"hexad {name}: not done in {args.timeout:.0f} s: "
            f"{(late.stderr or b'').decode()[-3000:]}{(late.stdout or b'').decode()[-1000:]}") from None
    if result.returncode:
        raise RuntimeError(f"hexad {name}: exit {result.returncode}: {(result.stderr + result.stdout)[-3000:]}")
    return result.stdout


def tensors_of(folder):
    from safetensors import safe_open
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                yield name, file.get_tensor(name)


def expected(name, ours):
    """What the server should hold under a name of its own: several of the checkpoint's end to end if it fuses them."""
    import torch
    for fused, parts in FUSED.items():
        if f".{fused}." in name:
            return torch.cat([ours[name.replace(fused, part)] for part in parts])
    return ours.get(name)


def bits(tensor):
    import torch
    return tensor.contiguous().view(torch.uint8)


def compare_weights(args, url, ours, folder):
    """Bit for bit, in the server's type, with `ours`, a checkpoint's tensors by name."""
    import torch
    out = folder / "server_weights"
    out.mkdir()
    ask(url + "/collective_rpc", {"method": "save_sharded_state", "kwargs": {"path": str(out)}}, timeout=args.timeout)
    found = {"equal": 0, "different": [], "largest_difference": 0.0, "bytes": 0, "dtypes": {}}
    for name, theirs in tensors_of(out):
        if name.endswith(OWN):
            continue
        want = expected(name, ours)
        if want is None and name == "lm_head.weight":
            want = ours["model.embed_tokens.weight"]
        if want is None or theirs.shape[1:] != want.shape[1:] or theirs.shape[0] < want.shape[0]:
            found["different"].append(f"{name}: {list(theirs.shape)}")
            continue
        theirs, want = theirs[:want.shape[0]], want.to(theirs.dtype)  # the vocabulary may be padded
        found["bytes"] += theirs.numel() * theirs.element_size()
        kind = str(theirs.dtype).removeprefix("torch.")
        found["dtypes"][kind] = found["dtypes"].get(kind, 0) + 1
        if torch.equal(bits(theirs), bits(want)):
            found["equal"] += 1
        else:
            found["different"].append(name)
            found["largest_difference"] = max(found["largest_difference"],
                                              (theirs.float() - want.float()).abs().max().item())
    moved = sum(not torch.equal(bits(value), bits(ours[name].to(value.dtype))) for name,
                value in tensors_of(args.start) if name in ours)
    found["changed_since_the_start"] = moved
    return found


def compare_tokens(args, url, checkpoint, folder, count=16, new=32):
    """Greedy continuations of both sides, the server's with its two best log-probs."""
    draw = random.Random(3)
    prompts = [[draw.randrange(2, 60) for _ in range(draw.randint(4, 60))] for _ in range(count)]
    (folder / "greedy.jsonl").write_text("".join(json.dumps({"token_ids": p}) + "\n" for p in prompts))
    text = hexad(args, "generate", checkpoint, "--input", folder / "greedy.jsonl", "--greedy", "--json",
                 f"policy.precision={args.precision}",
                 f"policy.generation.max_new_tokens={new}", "++cluster.device=cuda",
                 "++policy.max_total_sequence_length=256",
                 "++policy.generation.native_cfg.kv_cache_gb=1")
    ours = [json.loads(line)["token_ids"] for line in text.splitlines() if line.startswith("{")]
    model = ask(url + "/v1/models")["data"][0]["id"]
    same = close = wrong = 0
    for prompt, mine in zip(prompts, ours, strict=True):
        answer = ask(url + "/v1/completions",
                     {"model": model, "prompt": prompt, "max_tokens": new, "temperature": 0, "logprobs": 2,
                      "return_token_ids": True})
        choice = answer["choices"][0]
        theirs, best = choice["token_ids"], choice["logprobs"]["top_logprobs"]
        for i, (a, b) in enumerate(zip(mine, theirs)):
            if a == b:
                same += 1
                continue
            two = sorted(best[i].values(), reverse=True)[:2]
            if two[0] - two[1] > MARGIN:
                wrong += 1
            else:
                close += 1
            break
    return {"prompts": count, "tokens_equal": same, "ends_at_a_near_tie": close, "wrong": wrong}


def train(args, folder, config, result):
    """A run of `config`: its metrics into `result`; the folder of its last checkpoint."""
    (folder / "grpo.yaml").write_text(json.dumps(config))
    hexad(args, "train", folder / "grpo.yaml", *args.override)
    lines = [json.loads(line) for line in next((folder / "log").rglob("metrics.jsonl")).read_text().splitlines()]
    key = "timing/train/prepare_for_generation/transfer_and_update_weights"
    result["refit_s"] = [line[key] for line in lines if key in line]
    result["token_mult_prob_error"] = [line["train/token_mult_prob_error"] for line in lines
                                       if "train/token_mult_prob_error" in line]
    checkpoint = next((folder / "checkpoints").glob(f"step_{args.steps - 1}/**/config.json")).parent
    for file in folder.glob("tokenizer*"):
        shutil.copy(file, checkpoint)
    return checkpoint


def measure(args, model, folder, url, result):
    checkpoint = train(args, folder, config_of(args, model, folder, url), result)
    result["weights"] = compare_weights(args, url, dict(tensors_of(checkpoint)), folder)
    result["greedy"] = compare_tokens(args, url, checkpoint, folder)


def main():
    parser = argparse.ArgumentParser()
    add_model_arguments(parser, "qwen2.5-1.5b", 1)
    parser.add_argument("--transport", required=True, choices=("disk", "ipc", "nccl"))
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--server-gpu", type=int, default=0)
    parser.add_argument("--server-memory", type=float, default=0.3, help="part of its GPU's memory")
    parser.add_argument("--server-args", default="")
    parser.add_argument("--timeout", type=float, default=240)
    parser.add_argument("override", nargs="*")
    args = parser.parse_args()
    config = model_config(args)
    result = {"model": args.model, "layers": config["num_hidden_layers"], "transport": args.transport,
              "gpus": args.gpus}
    with tempfile.TemporaryDirectory() as temporary, weights_of(args, config, make_model) as model:
        folder, args.start = pathlib.Path(temporary), model
        write_tokenizer(folder, config["vocab_size"])
        write_prompts(folder, 64, 20, 60)
        with server(args, model, folder) as (url, seconds):
            result["server"] = {"version": ask(url + "/version")["version"], "start_s": seconds}
            try:
                measure(args, model, folder, url, result)
            except Exception as error:
                raise RuntimeError(
                    f"{error}\nso far: {json.dumps(result)}\nthe server: "
                    f"{(folder / 'server.log').read_text()[-2000:]}") from error
    weights, greedy = result["weights"], result["greedy"]
    result["ok"] = not weights["different"] and weights["changed_since_the_start"] > 0 and greedy[
        "wrong"] == 0 and greedy["tokens_equal"] > 0
    pathlib.Path(args.out).write_text(json.dumps(result, indent=1))
    print(json.dumps(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
