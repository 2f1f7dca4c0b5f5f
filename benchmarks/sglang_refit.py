#!/usr/bin/env python3
"""Weights of a GPU to a rank of SGLang by CUDA IPC or NCCL, compared bit for bit.

    python3 -B benchmarks/sglang_refit.py --driver build/dev/bin/sglang_refit --sglang SITE/sglang --out RESULT.json
        [--transport ipc|nccl] [--mib 1024] [--updates 3]

No SGLang server runs: this process answers the calls of one, and takes the weights as a rank of one does, by SGLang's
own code, which is read out of its files (--sglang: the folder of the package, of which srt/utils/common.py,
srt/utils/patch_torch.py, srt/weight_sync/tensor_bucket.py and srt/model_executor/model_runner_components/
weight_updater.py are wanted): SafeUnpickler, the rebuilding of CUDA tensors by the GPU's UUID, flattened buckets, and
groups of torch.distributed. Its load_weights copies each tensor on the current stream, and nobody waits for that, as in
SGLang. --driver (`ninja sglang_refit`) is the bridge with weights whose bytes a formula gives. Where LibTorch is not
beside it, LD_LIBRARY_PATH names torch/lib of this Python.

NCCL takes two GPUs, the driver's and the next. On one GPU both sides meet, and NCCL refuses them: what is looked at
then is that they have met. Exits with 1 when a weight differs, is missing, or the driver fails.
"""
import argparse
import ast
import functools
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from multiprocessing.reduction import ForkingPickler

FACTOR, STEP = 1103515245, 12345  # of sglang_refit.cpp


def parts_of(path, names, scope):
    """Executes these classes, functions and methods of a file of SGLang's in `scope`, and nothing else of it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in names:
            found.add(node.name)
            module = ast.Module([ast.ImportFrom("__future__", [ast.alias("annotations")], 0), node], [])
            exec(compile(ast.fix_missing_locations(module), str(path), "exec"), scope)
    assert found == set(names), f"{path} has no {set(names) - found}"


def module_of(name, **values):
    module = types.ModuleType(name)
    module.__dict__.update(values)
    sys.modules[name] = module
    return module


def sglang(folder):
    """SGLang's own names, in modules of the names that its pickles have."""
    srt = folder / "srt"
    for name in ("sglang", "sglang.srt", "sglang.srt.utils", "sglang.srt.weight_sync"):
        module_of(name, __path__=[])
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    common = module_of("sglang.srt.utils.common", is_musa=lambda: False, is_npu=lambda: False, torch_release=release,
                       pickle=pickle, io=io, torch=torch, ForkingPickler=ForkingPickler, functools=functools,
                       pybase64=__import__("base64"))
    parts_of(srt / "utils/common.py", ["SafeUnpickler", "MultiprocessingSerializer", "init_custom_process_group"],
             common.__dict__)
    for name in ("utils.patch_torch", "weight_sync.tensor_bucket"):
        path = srt / (name.replace(".", "/") + ".py")
        module = module_of("sglang.srt." + name)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    bucket = sys.modules["sglang.srt.weight_sync.tensor_bucket"]
    updater = dict(FlattenedTensorBucket=bucket.FlattenedTensorBucket, torch=torch,
                   FlattenedTensorMetadata=bucket.FlattenedTensorMetadata)
    parts_of(srt / "model_executor/model_runner_components/weight_updater.py",
             ["_update_weights_from_flattened_bucket", "_receive_bucketed_weights_from_distributed"], updater)
    return types.SimpleNamespace(**common.__dict__, updater=updater, patch=sys.modules["sglang.srt.utils.patch_torch"])


class Rank:
    """What a rank of SGLang holds; its calls are one at a time, as in its scheduler."""

    def __init__(self, own, device):
        self.own, self.device, self.weights, self.groups = own, torch.device("cuda", device), {}, {}
        self.open, self.version, self.seconds = False, "default", {}
        self.lock = threading.Lock()

    def load_weights(self, named):
        for name, tensor in named:
            if name not in self.weights:
                self.weights[name] = torch.empty_like(tensor, device=self.device)
            self.weights[name].copy_(tensor)

    def get_model(self):
        return self

    def from_tensor(self, body):
        self.own.patch.monkey_patch_torch_reductions()
        bucket = self.own.MultiprocessingSerializer.deserialize(body["serialized_named_tensors"][0])
        assert body["load_format"] == "flattened_bucket"
        return self.own.updater["_update_weights_from_flattened_bucket"](self, bucket)

    def from_distributed(self, body):
        this = types.SimpleNamespace(device=self.device, _model_update_group=self.groups)
        assert body["load_format"] == "flattened_bucket"
        try:
            named = self.own.updater["_receive_bucketed_weights_from_distributed"](
                this, names=body["names"], dtypes=body["dtypes"], shapes=body["shapes"], group_name=body["group_name"])
        except Exception as error:  # as SGLang's scheduler
            return False, f"Failed to receive weights: {error}"
        self.load_weights(named)
        return True, "Succeeded to update parameter online."

    def join(self, body):
        if not torch.distributed.is_initialized():  # a server has a group of its own
            torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
        self.groups[body["group_name"]] = self.own.init_custom_process_group(
            backend=body["backend"], init_method=f"tcp://{body['master_address']}:{body['master_port']}",
            world_size=body["world_size"], rank=body["rank_offset"], group_name=body["group_name"])
        return True, "Succeeded to initialize custom process group."

    def answer(self, path, body):
        """Whether the call succeeded, and what is said of it."""
        with self.lock, torch.cuda.device(self.device):
            if path in ("/update_weights_from_tensor", "/update_weights_from_distributed"):
                assert self.open, path
                began = time.monotonic()
                result = self.from_tensor(body) if path.endswith("tensor") else self.from_distributed(body)
                self.seconds[body["weight_version"]] = (self.seconds.get(body["weight_version"], 0) +
                                                        time.monotonic() - began)
                self.version = body["weight_version"] if result[0] else self.version
                return result
            if path == "/init_weights_update_group":
                return self.join(body)
            if path == "/destroy_weights_update_group":
                group = self.groups.pop(body["group_name"], None)
                if group is not None:
                    torch.distributed.destroy_process_group(group)
                return group is not None, ""
            if path == "/begin_weight_update":
                self.open, opened = True, self.open
                return not opened, ""
            if path == "/end_weight_update":
                self.open, opened = False, self.open
                return opened, self.check() if opened else ""
            return True, ""

    def check(self):
        """Notes how many weights are those of the version."""
        torch.cuda.synchronize()
        wrong = []
        for name, weight in self.weights.items():
            index = torch.arange(weight.numel() * weight.element_size(), dtype=torch.int64, device=self.device)
            bytes_of_it = ((index * FACTOR + STEP * (1000 * int(self.version) + int(name[1:]))) >> 16).to(torch.uint8)
            if not torch.equal(weight.reshape(-1).view(torch.uint8), bytes_of_it):
                wrong.append(name)
        self.checked = getattr(self, "checked", []) + [
            {"version": self.version, "equal": len(self.weights) - len(wrong), "different": wrong,
             "seconds_in_the_rank": self.seconds.get(self.version)}]
        return ""


def handler_of(rank):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, answer):
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            self.reply(200, {"is_generation": True, "weight_version": rank.version, "model_type": "llama",
                             "version": "0.5.23", "tp_size": 1, "dp_size": 1, "pp_size": 1, "device": "cuda"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            try:
                good, message = rank.answer(self.path, body)
            except Exception as error:
                good, message = False, f"{type(error).__name__}: {error}"
            self.reply(200 if good else 400, {"success": good, "message": message})

    return Handler


def drive(args, url, folder):
    """What the driver says of each update, and its last words if it failed."""
    (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": 97}')
    (folder / "model.safetensors").write_text("0")  # a server has weights already
    result = subprocess.run([args.driver, url, "--model", folder, "--transport", args.transport, "--mib", str(args.mib),
                             "--updates", str(args.updates)], capture_output=True, text=True, timeout=args.timeout)
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")], (
        "" if result.returncode == 0 else result.stderr[-3000:] or f"exit {result.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True, type=pathlib.Path)
    parser.add_argument("--sglang", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--transport", choices=["ipc", "nccl"], default="ipc")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=400)
    args = parser.parse_args()
    gpus = torch.cuda.device_count()
    alone = args.transport == "nccl" and gpus < 2
    rank = Rank(sglang(args.sglang), 1 if args.transport == "nccl" and not alone else 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(rank))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        updates, failure = drive(args, f"http://127.0.0.1:{server.server_port}", pathlib.Path(folder))
    checked = getattr(rank, "checked", [])
    for update, seen in zip(updates, checked):
        update.update(seen, gigabytes_per_s=round(update["bytes"] / update["seconds"] / 1e9, 2))
    met = "uplicate GPU" in failure
    good = met if alone else (not failure and len(updates) == len(checked) == args.updates and
                              all(not each["different"] and each["equal"] > 6 for each in checked))
    result = {"transport": args.transport, "gpus": [torch.cuda.get_device_name(i) for i in range(gpus)],
              "torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version())), "good": good,
              "updates": updates, "failure": failure,
              **({"met": met, "sent": "not run: NCCL takes two GPUs"} if alone else {})}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
