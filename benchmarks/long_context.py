#!/usr/bin/env python3
"""One training step over one long sequence on context-parallel ranks of this machine: bytes and seconds of each rank.

    benchmarks/long_context.py [--build build/dev] [--tokens 16384 65536] [--layouts cp1 cp2 cp4] [--plugin megatron]
                               [--layers 2] [--heads 2] > long_context.json

A layout is cpN with an optional form: cp4:all_gather, cp2:a2a, cp4:a2a+p2p. Gloo processes on the CPU run the scenario
"long_context" of tests/plugins/megatron (tests/plugins/backend/long_context.hpp); bytes are counted by the allocator
(hexad_memory_stats.activation_peak_bytes). Every layout must give the loss and the gradients of the first one.
"""
import argparse, json, math, os, socket, struct, subprocess, sys, tempfile
from pathlib import Path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tensors(folder):
    """name -> list of floats, of fp32 safetensors."""
    found = {}
    for file in Path(folder).glob("*.safetensors"):
        data = file.read_bytes()
        (size,) = struct.unpack_from("<Q", data)
        for name, info in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + offset for offset in info["data_offsets"])
                found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found


def worst_difference(got, want):
    norm = lambda values: math.sqrt(math.fsum(v * v for v in values))
    return max(norm([a - b for a, b in zip(got[n], want[n])]) / (norm(want[n]) or 1.0) for n in want)


def model(options):
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64,
        "hidden_size": 16 * options.heads, "num_hidden_layers": options.layers, "num_attention_heads": options.heads,
        "num_key_value_heads": options.heads,
        "head_dim": 16, "intermediate_size": 64, "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 10000.0,
        "max_position_embeddings": max(options.tokens), "torch_dtype": "float32", "tie_word_embeddings": False,
    }


def policy(folder, plugin, ranks, form):
    sizes = {"context_parallel_size": ranks, "cp_comm_type": form}
    if form == "a2a+p2p":
        sizes["hierarchical_context_parallel_sizes"] = [2, ranks // 2]
    return {
        "model_name": str(folder / "model"), "precision": "float32", "random_init_seed": 7, "logprob_chunk_size": 1024,
        "optimizer": {"name": "torch.optim.AdamW", "kwargs": {"lr": 1e-3}}, f"{plugin}_cfg": sizes,
    }


def run(folder, options, tokens, layout):
    size, _, form = layout.partition(":")
    ranks, form = int(size.removeprefix("cp")), form or "p2p"
    file = folder / f"{tokens}.{layout.replace(':', '_')}"
    file.write_text(json.dumps({"plugin": options.plugin, "tokens": tokens,
                                "policy": policy(folder, options.plugin, ranks, form)}))
    build, port = Path(options.build).resolve(), free_port()
    program = build / "tests" / "test_plugins_megatron"
    children = []
    for rank in range(ranks):
        env = dict(os.environ, HEXAD_BUILD_DIR=str(build), HEXAD_SOURCE_DIR=str(Path(__file__).resolve().parents[1]),
                   OMP_NUM_THREADS="1", HEXAD_TEST_RANK=f"{rank} {ranks} {port} long_context {file}")
        children.append(subprocess.Popen([program, "--test-case=rank process", "--no-skip"], env=env,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for child in children:
        text, _ = child.communicate()
        if child.returncode:
            sys.exit(f"{tokens} tokens, {layout}: exit {child.returncode}\n{text}")
    results = [json.loads(Path(f"{file}.{rank}").read_text()) for rank in range(ranks)]
    return {"tokens": tokens, "layout": layout, "ranks": ranks, "form": form,
            "loss": math.fsum(r["loss"] for r in results), "seconds": max(r["seconds"] for r in results),
            "activation_peak_bytes": [r["activation_peak_bytes"] for r in results]}, tensors(f"{file}.grads")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--plugin", default="megatron", choices=["megatron", "dtensor"])
    parser.add_argument("--tokens", type=int, nargs="+", default=[16384, 65536])
    parser.add_argument("--layouts", nargs="+", default=["cp1", "cp2", "cp4"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=2)
    options = parser.parse_args()
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="hexad_long_") as name:
        folder = Path(name)
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text(json.dumps(model(options)))
        for tokens in options.tokens:
            first = None
            for layout in options.layouts:
                row, gradients = run(folder, options, tokens, layout)
                first = first or (row, gradients)
                row["loss_difference"] = abs(row["loss"] - first[0]["loss"]) / abs(first[0]["loss"])
                row["gradient_difference"] = worst_difference(gradients, first[1])
                highest = max(row["activation_peak_bytes"])
                row["share_times_ranks"] = highest * row["ranks"] / max(first[0]["activation_peak_bytes"])
                if max(row["loss_difference"], row["gradient_difference"]) > 1e-5:
                    wrong.append(f"{tokens} {layout}")
                rows.append(row)
                print(f"{tokens} {layout}: {highest / 2**20:.1f} MiB, {row['seconds']:.1f} s, x ranks "
                      f"{row['share_times_ranks']:.3f}, gradients {row['gradient_difference']:.1e}", file=sys.stderr)
    report = {"model": model(options), "plugin": options.plugin, "cores": os.cpu_count(), "steps": rows}
    print(json.dumps(report, indent=1))
    sys.exit(f"differ from the first layout: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
