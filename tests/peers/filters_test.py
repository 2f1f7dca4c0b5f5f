"""Log-probs have one convention, whoever generates: after temperature, top_p and top_k. GRPO with these on native, on a
real vLLM, whose log-probs are so, and on a real SGLang, whose log-probs are before the filters: each run's
token_mult_prob_error is that of fp32's noise. `make test-peers`, with the environments that tools/setup_peers.sh makes.
Wants HEXAD_SOURCE_DIR and HEXAD_BUILD_DIR.
"""
import argparse
import os
import sys
import tempfile

SOURCE, BUILD = os.environ["HEXAD_SOURCE_DIR"], os.environ["HEXAD_BUILD_DIR"]
sys.path.insert(0, f"{SOURCE}/benchmarks")
import server_seeds  # noqa: E402

STEPS = 4
FILTERS = {"top_p": ["policy.generation.temperature=0.7", "++policy.generation.top_p=0.9"],
           "top_k": ["policy.generation.temperature=0.7", "++policy.generation.top_k=5"]}
# exp of a mean difference of fp32 log-probs over two engines, each some 1e-6 from the exact one.
MOST_ERROR = server_seeds.MOST_ERROR["float32"]


def bench(engine, out):
    cache = os.path.dirname(os.path.dirname(os.path.dirname(sys.executable)))
    python = os.path.join(cache, server_seeds.ENGINES[engine].environment, "bin/python")
    return server_seeds.Bench(argparse.Namespace(engine=engine, out=out, python=python, hexad=f"{BUILD}/bin/hexad",
                                                 threads=1, overrides=[]))


def errors(bench, kind, folder, options):
    os.makedirs(folder)
    lines = bench.train(folder, 42, STEPS, "++checkpointing.enabled=false", "policy.precision=float32",
                        "grpo.val_at_end=false", *options, *bench.generator(kind, folder))
    return [line["train/token_mult_prob_error"] for line in lines if "train/token_mult_prob_error" in line]


def main():
    failed = False
    with tempfile.TemporaryDirectory() as out:
        for name, options in FILTERS.items():
            for engine, kind in (("vllm", "native"), ("vllm", "spawn"), ("sglang", "spawn")):
                found = errors(bench(engine, out), kind, f"{out}/{name}-{engine}-{kind}", options)
                holds = len(found) == STEPS and max(found) <= MOST_ERROR
                failed |= not holds
                print(f"{name}, {kind if kind == 'native' else engine}: token_mult_prob_error {found}, wanted {STEPS} "
                      f"of at most {MOST_ERROR}: {'holds' if holds else 'DOES NOT HOLD'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
