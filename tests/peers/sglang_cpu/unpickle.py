#!/usr/bin/env python3
"""Takes a bucket of weights that came by CUDA IPC as a rank of SGLang does, without a GPU: SGLang's own classes read
the pickle and cut the bucket up. What would map the memory is replaced: it notes its arguments, which must be of the
form of those that torch itself sends, and gives memory in which byte i is i % 251.

Reads {"payload": base64, "uuid": text, "handle": base64, "bytes": int} from standard input; prints [[name, dtype,
shape, sha256 of its bytes]]. PYTHONPATH names the folder sglang_cpu.
"""
import base64
import hashlib
import json
import sys
import types
from unittest import mock

import torch
from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater
from sglang.srt.utils.common import MultiprocessingSerializer, SafeUnpickler
from sglang.srt.utils.patch_torch import monkey_patch_torch_reductions
from torch.multiprocessing import reductions

NAMES = ("tensor_cls", "tensor_size", "tensor_stride", "tensor_offset", "storage_cls", "dtype", "storage_device",
         "storage_handle", "storage_size_bytes", "storage_offset_bytes", "requires_grad", "ref_counter_handle",
         "ref_counter_offset", "event_handle", "event_sync_required")


def torchs_own(size):
    """The arguments that torch sends for a CUDA tensor of so many bytes, its storage's part made up."""
    shared = (0, b"\x01c" + bytes(64), size, 0, b"/torch_1_2_3", 0, bytes(64), False)
    storage = mock.MagicMock(spec=torch.storage.TypedStorage)
    storage._untyped_storage = types.SimpleNamespace(device=torch.device("cuda", 0))
    storage._share_cuda_ = lambda: shared
    tensor = torch.empty(size, dtype=torch.uint8)
    with mock.patch.object(torch.Tensor, "_typed_storage", lambda self: storage), \
         mock.patch.object(reductions, "StorageWeakRef", lambda storage: None):
        function, arguments = reductions._reduce_tensor_original(tensor)
    assert len(arguments) == len(NAMES)
    return dict(zip(NAMES, arguments))


class Recorder:
    def __init__(self):
        self.calls = []

    def __call__(self, *arguments):
        assert len(arguments) == len(NAMES), arguments
        self.calls.append(dict(zip(NAMES, arguments)))
        size = self.calls[-1]["storage_size_bytes"]
        return (torch.arange(size, dtype=torch.int64) % 251).to(torch.uint8)


def check(call, wanted, asked):
    own = {name: value for name, value in call.items()}
    for name in NAMES:
        same = own[name] == wanted[name]
        if name in ("storage_handle", "event_handle"):
            assert type(own[name]) is bytes and len(own[name]) == len(wanted[name]), name
        elif name == "ref_counter_handle":
            assert type(own[name]) is bytes and own[name].startswith(b"/"), name
        elif name == "storage_cls":
            assert own[name] is torch.UntypedStorage and hasattr(own[name], "_new_shared_cuda")
        elif name in ("tensor_size", "tensor_stride"):
            assert tuple(own[name]) == tuple(wanted[name]), (name, own[name], wanted[name])
        elif name == "storage_device":
            assert own[name] == 1, own[name]  # of the GPU with the UUID, by the number that it has here
        else:
            assert type(own[name]) is type(wanted[name]) and same, (name, own[name], wanted[name])
    assert own["storage_handle"] == b"\x01c" + base64.b64decode(asked["handle"])


def main():
    asked = json.load(sys.stdin)
    monkey_patch_torch_reductions()
    recorder = Recorder()
    reductions._rebuild_cuda_tensor_original = recorder
    gpus = [types.SimpleNamespace(uuid=uuid) for uuid in ("00000000-0000-0000-0000-000000000000", asked["uuid"])]
    loaded = []
    model = types.SimpleNamespace(load_weights=loaded.extend)
    with mock.patch.object(torch.cuda, "device_count", lambda: len(gpus)), \
         mock.patch.object(torch.cuda, "get_device_properties", gpus.__getitem__):
        bucket = MultiprocessingSerializer.deserialize(base64.b64decode(asked["payload"]))
    assert sorted(bucket) == ["flattened_tensor", "metadata"]
    assert len(recorder.calls) == 1
    check(recorder.calls[0], torchs_own(asked["bytes"]), asked)
    for one in bucket["metadata"]:
        assert type(one.shape) is torch.Size and type(one.dtype) is torch.dtype and type(one.name) is str
        assert one.numel == one.end_idx - one.start_idx == one.shape.numel() * one.dtype.itemsize
    updater = types.SimpleNamespace(get_model=lambda: model)
    assert WeightUpdater._update_weights_from_flattened_bucket(updater, bucket) == (True, "Success")
    # What SafeUnpickler is for: it lets no other function pass.
    try:
        MultiprocessingSerializer.deserialize(b"\x80\x03cos\nsystem\nX\x01\x00\x00\x00a\x85R.")
        raise SystemExit("SafeUnpickler let os.system pass")
    except RuntimeError as error:
        assert "Blocked unsafe global" in str(error) and SafeUnpickler.__name__ == "SafeUnpickler"
    digest = lambda tensor: hashlib.sha256(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    print(json.dumps([[name, str(tensor.dtype), list(tensor.shape), digest(tensor)] for name, tensor in loaded]))


if __name__ == "__main__":
    main()
