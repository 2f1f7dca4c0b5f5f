"""`policy/weights` of a checkpoint is a model folder that other programs open as it is: transformers loads model and
tokenizer, gives the log-probs of `hexad score` and the tokens of `hexad tokenize`, and vLLM (where its package is
installed) writes what `hexad generate --greedy` writes. Each family is trained for two steps first.
`make test-peers`, with the environment that tools/setup_peers.sh makes. Wants HEXAD_SOURCE_DIR and HEXAD_BUILD_DIR.
usage: weights_test.py [llama|qwen3]
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="WARNING",
                  VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_NO_USAGE_STATS="1")
SOURCE, BUILD = Path(os.environ["HEXAD_SOURCE_DIR"]), Path(os.environ["HEXAD_BUILD_DIR"])
BOUND = 1e-4  # of a log-prob in fp32
FAMILIES = {  # over the quickstart's model; heads of 32, which vLLM's attention for CPUs has
    "llama": {"head_dim": 32},
    "qwen3": {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "head_dim": 32, "use_sliding_window": False,
              "tie_word_embeddings": True},
}
QUESTIONS = ["abcd", "hgfe", "c", "ddddddd"]
NEW_TOKENS = 8


def hexad(*arguments):
    """What the program writes; it has to end well."""
    run = subprocess.run([BUILD / "bin/hexad", *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def lines_of(folder, rows, command, model, *options):
    """Of a command that takes JSON lines: its answers."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = hexad(command, model, "--input", folder / "rows.jsonl", *options)
    return [json.loads(line) for line in said.splitlines()]


def trained(folder, values):
    """The weights of a checkpoint after two steps of a model of random weights."""
    model, quickstart = folder / "model", SOURCE / "configs/quickstart_model"
    model.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).write_bytes((quickstart / name).read_bytes())
    config = json.loads((quickstart / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **values}))
    hexad("train", SOURCE / "configs/quickstart.yaml", f"policy.model_name={model}", "grpo.max_num_steps=2",
          "grpo.num_prompts_per_step=4", "grpo.num_generations_per_prompt=4", "policy.train_global_batch_size=16",
          "policy.train_micro_batch_size=16", "policy.optimizer.kwargs.lr=1e-2", "grpo.val_at_start=false",
          "grpo.val_at_end=false", "grpo.val_period=0", f"logger.log_dir={folder}/logs",
          "checkpointing.metric_name=null", f"checkpointing.checkpoint_dir={folder}/checkpoints",
          "checkpointing.save_period=2", "cluster.device=cpu")
    weights = folder / "checkpoints/step_2/policy/weights"
    assert weights.is_dir(), sorted(folder.rglob("*"))
    return weights


def opened(weights):
    """transformers' own model and tokenizer of the folder, in which nothing is missing and nothing left over."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    model, found = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32, output_loading_info=True)
    wrong = {what: names for what, names in found.items() if names}
    assert not wrong, wrong
    return model.eval(), AutoTokenizer.from_pretrained(weights)


def logits_of(model, ids):
    import torch
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def check_tokens(folder, weights, tokenizer):
    """The chat template's token ids of each question, which are the prompts of what follows."""
    messages = [[{"role": "user", "content": text}] for text in QUESTIONS]
    rows = [{"messages": each, "add_generation_prompt": True} for each in messages]
    ours = lines_of(folder, rows, "tokenize", weights)
    theirs = [list(tokenizer.apply_chat_template(each, add_generation_prompt=True, return_dict=True)["input_ids"])
              for each in messages]
    assert [row["token_ids"] for row in ours] == theirs, (ours, theirs)
    assert all(len(row) > len(text) for row, text in zip(theirs, QUESTIONS)), theirs  # the template's own, too
    return theirs


def check_logprobs(folder, weights, model, prompts):
    """Of every token behind the first, under both; they have to tell a trained model from one that knows nothing."""
    scored = lines_of(folder, [{"token_ids": ids} for ids in prompts], "score", weights, "policy.precision=float32",
                      "cluster.device=cpu")
    worst, values = 0, []
    for ids, row in zip(prompts, scored, strict=True):
        theirs = logits_of(model, ids).log_softmax(-1)[range(len(ids) - 1), ids[1:]].tolist()
        worst = max(worst, *(abs(a - b) for a, b in zip(theirs, row["logprobs"][1:], strict=True)))
        values += theirs
    assert max(values) - min(values) > 0.5, values
    assert worst <= BOUND, f"log-probs differ by {worst}"
    return worst


def check_greedy(model, prompts, answers, who):
    """Each token is the likeliest one, as transformers sees it, up to ties; and an answer ends where the model does."""
    end = model.config.eos_token_id
    for ids, answer in zip(prompts, answers, strict=True):
        assert answer, f"{who}: no token"
        logits = logits_of(model, ids + answer)[len(ids) - 1:-1]
        behind = [(row.max() - row[token]).item() for row, token in zip(logits, answer, strict=True)]
        assert max(behind) <= 1e-3, f"{who}: {ids} {answer}: {behind}"
        assert len(answer) == NEW_TOKENS or answer[-1] == end, f"{who}: {answer}"


def ours_of(folder, weights, prompts):
    rows = lines_of(folder, [{"token_ids": ids} for ids in prompts], "generate", weights, "--greedy",
                    "policy.precision=float32", "cluster.device=cpu", f"policy.generation.max_new_tokens={NEW_TOKENS}")
    return [row["token_ids"] for row in rows]


def vllms_of(weights, prompts):
    from vllm import LLM, SamplingParams
    llm = LLM(model=str(weights), dtype="float32", enforce_eager=True, max_model_len=64, max_num_seqs=4)
    outputs = llm.generate([{"prompt_token_ids": ids} for ids in prompts],
                           SamplingParams(temperature=0, max_tokens=NEW_TOKENS), use_tqdm=False)
    return [list(output.outputs[0].token_ids) for output in outputs]


def check(family):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights = trained(folder, FAMILIES[family])
        model, tokenizer = opened(weights)
        prompts = check_tokens(folder, weights, tokenizer)
        worst = check_logprobs(folder, weights, model, prompts)
        ours = ours_of(folder, weights, prompts)
        check_greedy(model, prompts, ours, "hexad")
        print(f"{family}: transformers opens the weights; log-probs within {worst:.1e}, the template's tokens the same",
              flush=True)
        if importlib.util.find_spec("vllm") is None:
            print(f"{family}: skipped: vLLM is not installed here")
            return
        check_greedy(model, prompts, vllms_of(weights, prompts), "vLLM")
        print(f"{family}: vLLM opens the weights, and writes the likeliest tokens")


if __name__ == "__main__":  # vLLM may start processes that read this file again
    if len(sys.argv) > 1:
        check(sys.argv[1])
    else:  # a process each: what vLLM has set up stays as long as one lives
        for each in FAMILIES:
            subprocess.run([sys.executable, "-B", __file__, each], check=True)
