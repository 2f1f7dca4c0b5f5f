#!/usr/bin/env python3
"""The conformance kit on a GPU: good losses for CUDA memory pass every level, broken ones are caught with their line.

usage: gpu_verify.py --hexad build/cuda/bin/hexad --loss-cuda libmy_loss_cuda.so --plugins build/cuda/lib/hexad/plugins
                     --out RESULT.json [--only loss_cuda,good,corpus,runtime_api,sanitizer,first_party]

--loss-cuda is what `hexad plugin new loss_cuda my_loss_cuda` builds to. Standard library and a C compiler only. Every
part prints what it saw; the exit status is the number of parts that did not hold. Run from the repository root. The
part runtime_api needs nvcc, sanitizer compute-sanitizer.
"""
import argparse, concurrent.futures, hashlib, json, pathlib, platform, subprocess, sys, tempfile, time

SOURCE = pathlib.Path("tests/app/broken/cuda_loss.c")
CORPUS = json.loads(pathlib.Path("tests/app/broken/cuda_corpus.json").read_text())

# The template of a CUDA loss with one line more before it ends, or a text replaced: what the kit has to say of it. It
# shows that a runtime linked statically is seen through as well as the driver API of the corpus.
LAST = "  const cudaError_t error = cudaGetLastError();"
STREAM = "static_cast<cudaStream_t>(stream)"
RUNTIME_API = [
    ("as it is", LAST, LAST, ""),
    ("waits for the device", LAST, "  cudaDeviceSynchronize();\n" + LAST, "L7 synchronises: "),
    ("waits for the stream", LAST, "  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));\n" + LAST,
     "L7 synchronises: "),
    ("reads back", LAST,
     "  double loss; cudaMemcpy(&loss, HEXAD_F64(out->loss), sizeof loss, cudaMemcpyDeviceToHost);\n" + LAST,
     "L7 unsafe call: "),
    ("allocates and frees", LAST, "  void* more; cudaMalloc(&more, 1 << 20); cudaFree(more);\n" + LAST,
     "L7 synchronises: "),
    ("allocates once", LAST, "  static void* more; if (!more || self->eps > 0) cudaMalloc(&more, 1 << 12);\n" + LAST,
     "L7 unsafe call: "),
    ("works on the legacy stream", STREAM, "static_cast<cudaStream_t>(nullptr)", "L7 stream order: "),
    ("works on the thread's stream", STREAM, "cudaStreamPerThread", "L7 stream order: "),
]


def verify(library, *arguments):
    """The report as a dictionary, with the seconds that it took."""
    begin = time.time()
    run = subprocess.run([options.hexad, "plugin", "verify", str(library), "--json", "--timeout", "60", *arguments],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"verify {library}: exit {run.returncode}: {run.stderr.strip()[-600:]}")
    return json.loads(run.stdout), time.time() - begin


def lines(report):
    return [f"L{level['level']} {'warning: ' if f['warning'] else ''}{f['check']}: {f['text']}"
            for level in report["levels"] for f in level["findings"]]


def build(flags="", memory=("cuda",)):
    """libtoy.so of SOURCE, with its manifest."""
    library = pathlib.Path(tempfile.mkdtemp(dir=work)) / "libtoy.so"
    subprocess.run(
        f"cc -std=gnu11 -O1 -shared -fPIC -fvisibility=hidden -w -Isdk/include -Wl,-z,now -Wl,--build-id {flags} "
        f"{SOURCE} -o {library}", shell=True, check=True)
    return with_manifest(library, memory)


def build_template(change):
    """libtoy.so of the template of CUDA losses with one text in the place of another."""
    _, old, new, _ = change
    text = pathlib.Path("sdk/template/loss_cuda/@NAME@.cu.in").read_text()
    assert old in text, old
    source = pathlib.Path(tempfile.mkdtemp(dir=work)) / "toy.cu"
    source.write_text(text.replace(old, new).replace("@NAME@", "toy").replace('"1.0.0"', '"1.2.0"'))
    library = source.with_name("libtoy.so")
    subprocess.run(["nvcc", "-std=c++20", "-arch=native", "-O1", "-shared", "-Xcompiler=-fPIC,-fvisibility=hidden",
                    "-Xlinker=-z,now,--build-id,--exclude-libs,ALL",
                    "-Isdk/include", str(source), "-o", str(library)], check=True)
    return with_manifest(library, ("cuda",))


def with_manifest(library, memory):
    manifest = {"format": 1, "kind": "loss", "name": "toy", "version": "1.2.0", "library": library.name,
                "abi": {"major": 1, "min_host_minor": 0},
                "arch": platform.machine() + "-linux-gnu", "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
                "size": library.stat().st_size,
                "memory": list(memory), "requires": {}}
    library.with_name("libtoy.hexad.json").write_text(json.dumps(manifest))
    return library


def passes_all(library):
    """Every level runs, on the GPU, and finds nothing but warnings."""
    report, seconds = verify(library, "--device", "cuda")
    not_run = [f"L{level['level']}: {level['not_run']}" for level in report["levels"] if "not_run" in level]
    ok = report["passed"] and report["gpu"] and not not_run and len(report["levels"]) == 8
    return bool(ok), {"gpu": report["gpu"], "seconds": round(seconds, 1),
                      "checks": {f"L{level['level']}": level["checks"] for level in report["levels"]},
                      "level_seconds": {f"L{level['level']}": round(level["seconds"], 2) for level in report["levels"]},
                      "findings": lines(report), "not_run": not_run}


def part_loss_cuda():
    return passes_all(options.loss_cuda)


def part_good():
    """The toy that the corpus breaks: as it is, not capturable, and for both memories."""
    results = {"cuda": passes_all(build()), "not capturable": passes_all(build("-DCAPS=HEXAD_CAP_CUDA_MEM")),
               "both memories": passes_all(
                   build("'-DCAPS=(HEXAD_CAP_HOST_MEM | HEXAD_CAP_CUDA_MEM | HEXAD_CAP_CAPTURABLE)'",
                         ("host", "cuda")))}
    return all(ok for ok, _ in results.values()), {name: seen for name, (_, seen) in results.items()}


def part_corpus():
    seen, caught = {}, 0
    for broken in CORPUS:
        library = build(broken["flags"], broken.get("memory", ["cuda"]))
        report, seconds = verify(library, "--level", str(broken["level"]))
        found = lines(report)
        is_caught = not report["passed"] and any(line.startswith(f"L{broken['level']} {broken['line']}")
                                                 for line in found)
        caught += is_caught
        seen[broken["what"]] = {"caught": is_caught, "seconds": round(seconds, 1), "findings": found}
        if not is_caught:
            print(f"  NOT CAUGHT: {broken['what']}: wanted {broken['line']!r}, got {found}", flush=True)
    return caught == len(CORPUS), {"broken": len(CORPUS), "caught": caught, "each": seen}


def part_runtime_api():
    with concurrent.futures.ThreadPoolExecutor() as pool:
        libraries = list(pool.map(build_template, RUNTIME_API))
    seen, ok = {}, True
    for (what, _, _, line), library in zip(RUNTIME_API, libraries):
        report, _ = verify(library, "--level", "7", "--device", "cuda")
        found = lines(report)
        held = any(each.startswith(line)
                   for each in found) and not report["passed"] if line else report["passed"] and not found
        ok = ok and held
        seen[what] = {"holds": held, "findings": found}
    return ok, seen


def part_sanitizer():
    run = subprocess.run(["compute-sanitizer", "--target-processes", "all", options.hexad, "plugin", "verify",
                          options.loss_cuda, "--level", "7", "--device", "cuda"],
                         capture_output=True, text=True)
    last = run.stdout.strip().splitlines()[-1]
    return run.returncode == 0 and last.endswith("ERROR SUMMARY: 0 errors"), {"exit": run.returncode, "last": last}


def part_first_party():
    """They take host memory alone: all levels but 7, which says so."""
    seen, ok = {}, True
    for name in ("clipped_pg", "nll"):
        report, seconds = verify(pathlib.Path(options.plugins).resolve() / f"lib{name}.so")
        reason = report["levels"][7].get("not_run", "")
        ok = ok and report["passed"] and reason == "the loss takes host memory alone" and all(
            "not_run" not in level for level in report["levels"][:7])
        seen[name] = {"passed": report["passed"], "L7": reason, "seconds": round(seconds, 1), "findings": lines(report)}
    return ok, seen


parts = {"loss_cuda": part_loss_cuda, "good": part_good, "corpus": part_corpus, "runtime_api": part_runtime_api,
         "sanitizer": part_sanitizer,
         "first_party": part_first_party}
parser = argparse.ArgumentParser()
parser.add_argument("--hexad", required=True)
parser.add_argument("--loss-cuda", required=True, type=lambda path: pathlib.Path(path).resolve())
parser.add_argument("--plugins", required=True)
parser.add_argument("--out", required=True)
parser.add_argument("--only", default="loss_cuda,good,corpus,runtime_api,sanitizer,first_party")
options = parser.parse_args()
options.hexad = str(pathlib.Path(options.hexad).resolve())
work = tempfile.mkdtemp(prefix="gpu_verify_")
report, failed = {}, 0
for name in options.only.split(","):
    try:
        ok, seen = parts[name]()
    except Exception as error:  # one part's end is not the others'
        ok, seen = False, {"error": str(error)}
    failed += not ok
    report[name] = {"holds": ok, **seen}
    print(name, "holds" if ok else "DOES NOT HOLD",
          json.dumps({key: value for key, value in seen.items() if key != "each"}), flush=True)
    pathlib.Path(options.out).write_text(json.dumps(report, indent=1))
sys.exit(failed)
