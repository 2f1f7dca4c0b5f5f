#!/usr/bin/env python3
"""A real SGLang server on a CPU, by the Python that runs this: as `python -m sglang.launch_server` with the same flags,
plus those below where they are not given. PyPI's SGLang is made for CUDA: its kernels are stood in for by
sitecustomize.py, beside this file.

usage: launch.py --model-path DIR --port PORT [FLAG ...]
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# What runs without CUDA kernels, and what two cores have room for.
FLAGS = {"--device": ["cpu"], "--attention-backend": ["torch_native"], "--disable-overlap-schedule": [],
         "--disable-cuda-graph": [], "--mem-fraction-static": ["0.2"], "--max-total-tokens": ["16384"],
         "--skip-server-warmup": [], "--sleep-on-idle": []}
# The prefix cache that is written in Rust wants the very torch that SGLang was built with.
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "SGLANG_USE_CPU_ENGINE": "1",
               "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND": "python", "PYTHONDONTWRITEBYTECODE": "1"}


def main():
    given = sys.argv[1:]
    names = {each.split("=")[0] for each in given}
    flags = [part for name, values in FLAGS.items() if name not in names for part in (name, *values)]
    path = os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-W", "ignore", "-m", "sglang.launch_server", *given, *flags]
    os.execve(command[0], command, {**os.environ, **ENVIRONMENT, "PYTHONPATH": path})


if __name__ == "__main__":
    main()
