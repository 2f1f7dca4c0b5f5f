#!/usr/bin/env python3
"""What fits on which card, by `hexad plan`: the table of docs/plan.md.

    benchmarks/plan_table.py [--hexad build/dev/bin/hexad]

GRPO by configs/recipes/grpo_math_8B.yaml with the sizes of published models (config.json alone, no weights): sequences
of 4,096 tokens, one in a micro-batch, blocks recomputed, rollouts by the native generator on the same cards, which
sleep at level 2 while the policy computes. Prints a row a model: for each number of cards the least GiB of one that
hold it, of the sizes below and less 2 GiB, and in brackets what its largest phase needs. Nothing is run.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

RECIPE = pathlib.Path(__file__).parent.parent / "configs/recipes/grpo_math_8B.yaml"
CARDS = [1, 2, 4, 8]
MEMORIES = [16, 24, 32, 48, 80, 96, 141, 180]  # GiB, as cards are sold
LEFT = 2  # GiB of a card that are left to what no plan counts: CUDA's context, NCCL, fragments

# model_type, hidden, layers, heads, key heads, MLP, vocabulary, tied embedding, head_dim where it is not hidden / heads
MODELS = {
    "Qwen2.5-0.5B": ("qwen2", 896, 24, 14, 2, 4864, 151936, True, None),
    "Qwen2.5-1.5B": ("qwen2", 1536, 28, 12, 2, 8960, 151936, True, None),
    "Qwen3-4B": ("qwen3", 2560, 36, 32, 8, 9728, 151936, True, 128),
    "Qwen2.5-7B": ("qwen2", 3584, 28, 28, 4, 18944, 152064, False, None),
    "Llama-3.1-8B": ("llama", 4096, 32, 32, 8, 14336, 128256, False, None),
    "Qwen3-32B": ("qwen3", 5120, 64, 64, 8, 25600, 151936, False, 128),
}


def config_of(model):
    family, hidden, layers, heads, key_heads, inner, vocabulary, tied, head_dim = model
    config = {"model_type": family, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": key_heads, "intermediate_size": inner, "vocab_size": vocabulary,
              "tie_word_embeddings": tied, "hidden_act": "silu", "max_position_embeddings": 32768}
    return config if head_dim is None else {**config, "head_dim": head_dim}


def plan(hexad, folder, cards, gib):
    command = [hexad, "plan", str(RECIPE), f"policy.model_name={folder}", f"cluster.gpus_per_node={cards}",
               "cluster.device=cuda", "policy.dtensor_cfg.activation_checkpointing=true",
               "++policy.generation.colocated.sleep_level=2", "--memory", f"{gib - LEFT}GiB", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def cell(hexad, folder, cards):
    for gib in MEMORIES:
        planned = plan(hexad, folder, cards, gib)
        if planned["fits"]:
            most = max(phase["sum"] for phase in planned["phases"]) / 2**30
            return f"{gib} ({most:.1f})"
        if planned["fits"] is None:
            return "not known"
    return "no"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hexad", default="build/dev/bin/hexad")
    arguments = parser.parse_args()
    print("| model | " + " | ".join(f"{cards} card{'s' * (cards > 1)}" for cards in CARDS) + " |")
    print("|---|" + "---|" * len(CARDS))
    with tempfile.TemporaryDirectory() as folder:
        for name, model in MODELS.items():
            (pathlib.Path(folder) / "config.json").write_text(json.dumps(config_of(model)))
            cells = [cell(arguments.hexad, folder, cards) for cards in CARDS]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
