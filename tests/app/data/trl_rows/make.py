#!/usr/bin/env python3
"""Writes the folders beside it: rows of each format in each container, by datasets and pyarrow; and expected.json, the
token ids and masks that TRL's trainers make of the same rows.

usage: make.py   (in the environment of tools/setup_peers.sh --trl, and with zstandard)
Run with trl 1.16.0, transformers 5.24.0, datasets 5.2.0, pyarrow 26.0.1, torch 2.11.0, zstandard 0.25.0.

A format that TRL does not know (questions and answers, ShareGPT's names, Alpaca, parts of text) is what its users make
of it before they train: `as_trl`.
"""
import gzip
import json
import os
import shutil
import sys
import tempfile
import types
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.modules["vllm"] = None  # TRL would load it
import datasets
import pyarrow as pa
import torch
import transformers
import trl
import zstandard
from trl.trainer.grpo_trainer import GRPOTrainer

from rows import FORMATS, REFUSED

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[3]
# A tokenizer of tests/golden, and a chat template of TRL's, which has one of its own to train with.
MODELS = {"qwen": ("smollm2", "qwen2_5"), "llama": ("llama3_style", "llama3")}
TEMPLATES = Path(trl.__file__).parent / "chat_templates"


def tokenizer_of(model):
    folder, template = MODELS[model]
    tokenizer = transformers.AutoTokenizer.from_pretrained(SOURCE / "tests/golden/tokenizers" / folder)
    tokenizer.chat_template = (TEMPLATES / f"{template}.jinja").read_text()
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def tiny_model(kind, tokenizer, **options):
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8,
                                      num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=4096,
                                      pad_token_id=tokenizer.pad_token_id, **options)
    return kind(config)


def training(config, max_length=None, **options):
    return config(output_dir=tempfile.mkdtemp(), report_to=[], use_cpu=True, bf16=False, max_length=max_length,
                  **options)


def bits(labels):
    return "".join("0" if label == -100 else "1" for label in labels)


def by_sft(rows, tokenizer, max_length=None):
    first = rows[0]
    is_text = "text" in first or isinstance(first.get("prompt"), str)
    # That the masks are of the assistant's messages alone is what TRL calls assistant_only_loss.
    args = training(trl.SFTConfig, max_length, assistant_only_loss=not is_text)
    made = trl.SFTTrainer(tiny_model(transformers.LlamaForCausalLM, tokenizer), args=args, train_dataset=rows,
                          processing_class=tokenizer).train_dataset
    return [{"token_ids": row["input_ids"], "trains": bits(row["labels"])} for row in made]


def by_dpo(rows, tokenizer):
    model, reference = (tiny_model(transformers.LlamaForCausalLM, tokenizer) for _ in range(2))
    made = trl.DPOTrainer(model, reference, args=training(trl.DPOConfig), train_dataset=rows,
                          processing_class=tokenizer).train_dataset

    def side(row, name):
        prompt, answer = row["prompt_ids"], row[name]
        return {"token_ids": prompt + answer, "trains": "0" * len(prompt) + "1" * len(answer)}
    return [{**side(row, "chosen_ids"), "rejected": side(row, "rejected_ids")} for row in made]


def by_rm(rows, tokenizer):
    model = tiny_model(transformers.LlamaForSequenceClassification, tokenizer, num_labels=1)
    made = trl.RewardTrainer(model, args=training(trl.RewardConfig), train_dataset=rows,
                             processing_class=tokenizer).train_dataset
    return [{"token_ids": row["chosen_ids"], "rejected": {"token_ids": row["rejected_ids"]}} for row in made]


def by_grpo(rows, tokenizer):
    """The trainer's tools are of all rows; here a row brings its own."""
    made = []
    for row in rows:
        tools = row.get("tools")
        trainer = types.SimpleNamespace(_is_vlm=False, environment_factories=None, processing_class=tokenizer,
                                        tools=json.loads(tools) if isinstance(tools, str) else tools,
                                        chat_template=None, chat_template_kwargs={})
        made.append({"token_ids": GRPOTrainer._tokenize_prompts(trainer, [row["prompt"]])[0][0]})
    return made


MAKERS = {"sft": by_sft, "grpo": by_grpo, "dpo": by_dpo, "rm": by_rm}


def dataset_of(rows):
    """As datasets makes one of Python's values: values of several types, and calls of tools, are Json."""
    return datasets.Dataset.from_list(rows, on_mixed_types="use_json")


def pack(path):
    data = path.read_bytes()
    Path(f"{path}.gz").write_bytes(gzip.compress(data, mtime=0))
    Path(f"{path}.zst").write_bytes(zstandard.compress(data, 19))


def write_refused(folder, rows):
    os.makedirs(folder)
    rows.to_parquet(folder / "rows.parquet")
    rows.to_json(folder / "rows.jsonl", force_ascii=False)
    if all(isinstance(value, (str, bool, type(None))) for row in rows for value in row.values()):
        rows.to_csv(folder / "rows.csv")


def write_containers(folder, rows, flat):
    os.makedirs(folder)
    rows.to_parquet(folder / "rows.parquet")
    os.makedirs(folder / "hub/data")
    for part in range(2):
        shard = rows.shard(2, part, contiguous=True)
        shard.to_parquet(folder / f"hub/data/train-0000{part}-of-00002.parquet", write_statistics=False)
    rows.save_to_disk(folder / "saved")
    datasets.DatasetDict({"train": rows}).save_to_disk(folder / "saved_splits")
    table = rows.data.table.combine_chunks()
    for name, make in (("stream.arrow", pa.ipc.new_stream), ("file.arrow", pa.ipc.new_file)):
        with make(str(folder / name), table.schema) as writer:
            writer.write_table(table)
    rows.to_json(folder / "rows.jsonl", force_ascii=False)
    rows.to_json(folder / "rows.json", lines=False, force_ascii=False)
    pack(folder / "rows.jsonl")
    pack(folder / "rows.json")
    if not flat:
        return
    rows.to_csv(folder / "rows.csv")
    rows.to_csv(folder / "rows.tsv", sep="\t")
    pack(folder / "rows.csv")
    pack(folder / "rows.tsv")


LOADERS = {"rows.parquet": "parquet", "hub": "parquet", "stream.arrow": "arrow", "rows.jsonl": "json",
           "rows.json": "json", "rows.jsonl.gz": "json", "rows.csv": "csv", "rows.tsv": "csv"}


def check_read_back(folder, rows):
    """The containers hold the same rows for datasets itself."""
    for name, loader in LOADERS.items():
        path = folder / name
        if not path.exists():
            continue
        options = {"sep": "\t"} if name == "rows.tsv" else {}
        files = sorted(str(file) for file in path.glob("data/*")) if path.is_dir() else str(path)
        with tempfile.TemporaryDirectory() as cache:
            read = datasets.load_dataset(loader, data_files=files, split="train", cache_dir=cache, **options)
            said = [{key: str(value) if loader == "csv" else value for key, value in row.items()} for row in read]
        if said != list(rows):
            print(f"{folder.name}/{name}: datasets reads other rows\n  {said}\n  {list(rows)}")


def cases():
    for name, form in FORMATS.items():
        rows = dataset_of(form.rows)
        write_containers(HERE / name, rows, form.flat)
        check_read_back(HERE / name, rows)
        said = rows if form.as_trl is None else dataset_of([form.as_trl(row) for row in rows])
        for use in form.uses:
            shown = said if use != "grpo" or form.as_prompt is None else dataset_of(
                [form.as_prompt(row) for row in said])
            for model in form.models:
                made = MAKERS[use](shown, tokenizer_of(model))
                yield {"format": name, "use": use, "model": model, "rows": made}


def cut():
    """Rows that are longer than max_length."""
    rows = by_sft(dataset_of(FORMATS["prompt_completion"].rows), tokenizer_of("qwen"), 12)
    return {"format": "prompt_completion", "use": "sft", "model": "qwen", "max_length": 12, "rows": rows}


def model_of(name, folder, template):
    """`header`: what the template writes before an answer; `behind_end`: behind the token that ends a message."""
    tokenizer = tokenizer_of(name)
    asked = [{"role": "user", "content": "?"}]
    bare, prompt = (tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=flag)
                    for flag in (False, True))
    tokens = {"header": prompt[len(bare):], "behind_end": bare[bare.rindex(tokenizer.eos_token) +
                                                               len(tokenizer.eos_token):]}
    return {"tokenizer": folder, "chat_template": (TEMPLATES / f"{template}.jinja").read_text(),
            **{key: tokenizer.encode(text, add_special_tokens=False) for key, text in tokens.items()}}


def main():
    for entry in HERE.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
    models = {name: model_of(name, *files) for name, files in MODELS.items()}
    made_by = {name: version(name) for name in ("trl", "transformers", "datasets", "pyarrow", "torch")}
    lines = [json.dumps(case, separators=(",", ":")) for case in cases()]
    for name, rows in REFUSED.items():
        write_refused(HERE / "refused" / name, dataset_of(rows))
    (HERE / "expected.json").write_text(
        '{"made_by": %s,\n"models": %s,\n"cut": %s,\n"cases": [\n%s\n]}\n' %
        (json.dumps(made_by), json.dumps(models, indent=1), json.dumps(cut()), ",\n".join(lines)))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
