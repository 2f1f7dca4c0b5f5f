# Part of a test: make_wheels, whose wheels have the names and files of those that tools/runtime/setup.sh fetches.

# make_wheels FOLDER LIST TORCH: with torch of that version; LIST gets their versions and digests.
make_wheels() {
  python3 - "$@" <<'P'
import hashlib, sys, zipfile
folder, listed, torch = sys.argv[1:]
files = {f"torch {torch} cp311-cp311-manylinux_2_28_x86_64":
             ["torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so", "torch/a.py"],
         "nvidia-cuda-runtime 13.0.96 py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64":
             ["nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/include/a.h"],
         "nvidia-cuda-cupti 13.0.85 py3-none-manylinux_2_25_x86_64": ["nvidia/cu13/lib/libcupti.so.13"],
         "pyarrow 26.0.1 cp311-cp311-manylinux_2_28_x86_64":
             ["pyarrow/libarrow.so.2600", "pyarrow/libparquet.so.2600", "pyarrow/libarrow_x.so.2600"]}
with open(listed, "w") as pins:
    for wheel, names in files.items():
        name, version, tags = wheel.split()
        base = f"{name.replace('-', '_')}-{version}"
        path = f"{folder}/{base}-{tags}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for each in names + [f"{base}.dist-info/{part}" for part in ("METADATA", "WHEEL", "RECORD")]:
                archive.writestr(zipfile.ZipInfo(each), f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                                 if each.endswith("METADATA") else f"Wheel-Version: 1.0\n{version}\n")
        pins.write(f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(open(path, 'rb').read()).hexdigest()}\n")
P
}
