#!/usr/bin/env python3
"""The program against Hugging Face transformers, tokenizers and llama.cpp's gguf package, on a llama model from a GGUF.

    python benchmarks/peer_transformers.py --hexad build/dev/bin/hexad --gguf FILE.gguf --model DIR [--tokens 2000]

DIR is the Hugging Face directory that `hexad convert FILE.gguf DIR` made (fp32). Run by a Python that has torch,
transformers (5 or newer), tokenizers, gguf and safetensors. Prints a line a check with the worst difference seen; the
exit code is the number of checks that failed. Conversions go to a temporary directory (TMPDIR; 6 bytes a parameter).
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
import gguf  # noqa: E402
import numpy  # noqa: E402
import safetensors.torch  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGPROB_LIMIT = 1e-4
NEW_TOKENS = 40
ROW_LENGTHS = [2, 1, 3, 64, 509, 127, 256, 31, 512]  # ragged, up to the longest row that the default config takes

transformers.utils.logging.disable_progress_bar()

CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "user", "content": "Write one sentence about the sea."}],
    [{"role": "system", "content": "Answer with a number only."}, {"role": "user", "content": "What is 17 + 25?"}],
    [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello Ada!"},
     {"role": "user", "content": "What is my name?"}],
    [{"role": "user", "content": "Übersetze „Guten Morgen“ ins Englische. 🌞"}],
    [{"role": "user", "content": "List three prime numbers between 10 and 30."}],
]
TEXTS = [
    "Hello, world!", "", " ", "  leading and trailing  ", "tabs\tand\r\nnew\n\n\nlines", "0123456789",
    "3.14159 1,234,567 2^10=1024",
    "٣٤٥ ４５６ ½ Ⅷ x² 1st", "naïve café — “quotes” … e\u0301", "日本語のテキスト、한국어 텍스트", "Привет, мир! Γειά σου κόσμε",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦 🇫🇷 🏳️‍🌈 🤷🏽", "\u200bzero\u200dwidth\ufeff \u00a0nbsp\u3000wide", "don't I'LL we've",
    "def f(x):\n    return x**2  # 42",
    "<|im_start|>user\nhi<|im_end|>", "<|im_start|><|im_end|><|endoftext|>", "a" * 300, "\x00\x01\x7f", "🅰12b34",
]


class Checks:
    def __init__(self):
        self.failed = 0

    def report(self, name, passed, detail):
        self.failed += not passed
        print(f"{'ok    ' if passed else 'FAILED'} {name}: {detail}", flush=True)


def run_program(hexad, *arguments):
    done = subprocess.run([hexad, *arguments], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"hexad {' '.join(arguments)} failed with exit code {done.returncode}")
    return done.stdout


def run_lines(hexad, command, model, lines, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        return [json.loads(line) for line in run_program(hexad, command, model, "--input", file.name,
                                                         *options).splitlines()]


def first_difference(got, want):
    """Where two lists of lists differ first, for the line of a failed check."""
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if a != b:
            return f"case {i} differs: got {a}, wanted {b}"
    return "all equal"


# ---- convert ----

def hugging_face_names(layers):
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    parts = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
             "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
             "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    for layer in range(layers):
        names.update({f"blk.{layer}.{a}": f"model.layers.{layer}.{b}" for a, b in parts.items()})
    return names


def peer_weights(reader, config):
    """Name and fp32 values of every weight, by the gguf package; q and k rows in transformers' order."""
    names = hugging_face_names(config["num_hidden_layers"])
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        stem = tensor.name.removesuffix(".weight")
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32, copy=False)
        values = values.reshape([int(n) for n in reversed(tensor.shape)])
        if count := heads.get(stem.split(".")[-1]):
            values = values.reshape(count, -1, 2, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        yield names[stem] + ".weight", torch.from_numpy(numpy.array(values))


def worst_difference(got, wanted):
    """Of every tensor of `wanted` (pairs of name and values) and the dict `got`; inf when names or shapes differ."""
    worst, seen, elements = 0.0, set(), 0
    for name, values in wanted:
        seen.add(name)
        if name not in got or got[name].shape != values.shape or got[name].dtype != values.dtype:
            return float("inf"), f"{name} is missing or of another shape or dtype"
        worst = max(worst, (got[name].float() - values.float()).abs().max().item())
        elements += values.numel()
    if extra := set(got) - seen:
        return float("inf"), f"has {sorted(extra)[0]}, which the peer has not"
    return worst, f"{len(seen)} tensors, {elements} values, worst difference {worst}"


def check_weights(checks, args, reader, config, folder):
    exact = lambda name, result: checks.report(name, result[0] == 0, result[1])
    converted = safetensors.torch.load_file(f"{args.model}/model.safetensors")
    exact("weights of --model = gguf.quants.dequantize", worst_difference(converted, peer_weights(reader, config)))

    run_program(args.hexad, "convert", args.gguf, f"{folder}/fp32")
    same = [name for name in sorted(os.listdir(args.model))
            if open(f"{args.model}/{name}", "rb").read() == open(f"{folder}/fp32/{name}", "rb").read()]
    checks.report("convert of the GGUF gives --model again", same == sorted(os.listdir(folder + "/fp32")),
                  f"equal bytes: {', '.join(same)}")

    run_program(args.hexad, "convert", args.model, f"{folder}/bf16", "--dtype", "bfloat16")
    rounded = ((name, values.to(torch.bfloat16)) for name, values in converted.items())
    exact("convert --dtype bfloat16 = torch's rounding",
          worst_difference(safetensors.torch.load_file(f"{folder}/bf16/model.safetensors"), rounded))


def check_config(checks, args):
    """config.json against transformers' own reading of the GGUF."""
    folder, file = os.path.split(os.path.abspath(args.gguf))
    ours = transformers.AutoConfig.from_pretrained(args.model)
    peer = transformers.AutoConfig.from_pretrained(folder, gguf_file=file)
    keys = ["model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "head_dim",
            "max_position_embeddings", "rms_norm_eps", "rope_parameters", "tie_word_embeddings", "vocab_size",
            "hidden_act",
            "attention_bias", "mlp_bias", "bos_token_id", "eos_token_id", "pad_token_id"]
    pairs = {key: (getattr(ours, key), getattr(peer, key)) for key in keys}
    different = {key: pair for key, pair in pairs.items() if pair[0] != pair[1] and not nearly(*pair)}
    checks.report("config.json = transformers' reading of the GGUF", not different,
                  f"{len(keys)} keys, different (ours, theirs): {different or 'none'}")


def nearly(a, b):
    """fp32 metadata (1e-05) may come back as the nearest double."""
    return isinstance(a, float) and isinstance(b, float) and numpy.float32(a) == numpy.float32(b)


# ---- tokenize ----

def check_tokenizer(checks, args, reader, documents):
    peer = tokenizers.Tokenizer.from_file(f"{args.model}/tokenizer.json")
    texts = TEXTS + documents
    got = [line["token_ids"] for line in run_lines(args.hexad, "tokenize", args.model,
                                                   [{"text": text} for text in texts])]
    want = [peer.encode(text).ids for text in texts]
    checks.report("tokenize text = tokenizers", got == want,
                  f"{len(texts)} texts, {sum(map(len, want))} tokens, {first_difference(got, want)}")

    got = [line["text"] for line in run_lines(args.hexad, "tokenize", args.model, [{"token_ids": ids} for ids in want],
                                              "--decode")]
    decoded = [peer.decode(ids, skip_special_tokens=False) for ids in want]
    checks.report("tokenize --decode = tokenizers", got == decoded,
                  f"{len(want)} texts, {first_difference(got, decoded)}")

    auto = transformers.AutoTokenizer.from_pretrained(args.model)
    lines = [{"messages": chat, "add_generation_prompt": prompt} for chat in CHATS for prompt in (False, True)]
    got = run_lines(args.hexad, "tokenize", args.model, lines)
    kinds = {False: "text", True: "token_ids"}
    for tokenize, key in kinds.items():
        want = [auto.apply_chat_template(line["messages"], add_generation_prompt=line["add_generation_prompt"],
                                         tokenize=tokenize, return_dict=False)
                for line in lines]
        ours = [line[key] for line in got]
        checks.report(f"tokenize messages: {key} = apply_chat_template", ours == want,
                      f"{len(lines)} chats, {first_difference(ours, want)}")
    check_vocabulary(checks, args, reader)


def check_vocabulary(checks, args, reader):
    field = lambda key: reader.fields["tokenizer.ggml." + key].contents()
    written = json.load(open(f"{args.model}/tokenizer.json", encoding="utf-8"))
    tokens, merges = field("tokens"), field("merges")
    vocabulary = written["model"]["vocab"]
    equal = vocabulary == {token: i for i, token in enumerate(tokens)} and written["model"]["merges"] == merges
    special = {token["content"] for token in written["added_tokens"] if token["special"]}
    equal = equal and special == {token for token,
                                  kind in zip(tokens, field("token_type"), strict=True)
                                  if kind == gguf.TokenType.CONTROL}
    checks.report("tokenizer.json = the GGUF's vocabulary", equal,
                  f"{len(tokens)} tokens, {len(merges)} merges, {len(special)} special")

    if field("pre") != "smollm":
        return
    numbers = ["0123456789", "1 22 333 4444", "2024-11-05", "v1.0.27", "abc123def456"]
    ids = [line["token_ids"] for line in run_lines(args.hexad, "tokenize", args.model,
                                                   [{"text": text} for text in numbers])]
    digits = [[tokens[i] for i in row if any(c.isdigit() for c in tokens[i])] for row in ids]
    want = [[c for c in text if c.isdigit()] for text in numbers]
    checks.report("pre-tokenizer smollm splits every digit", digits == want,
                  f"{sum(map(len, want))} digits, {first_difference(digits, want)}")


# ---- score and generate ----

def check_scores(checks, args, model, ids):
    rows, taken, i = [], 0, 0
    while taken < args.tokens:
        rows.append(ids[taken:taken + ROW_LENGTHS[i % len(ROW_LENGTHS)]])
        taken, i = taken + len(rows[-1]), i + 1
        if not rows[-1]:
            sys.exit(f"the text has {len(ids)} tokens, fewer than --tokens {args.tokens}")
    got = run_lines(args.hexad, "score", args.model, [{"token_ids": row} for row in rows])
    worst, total, count = 0.0, 0.0, 0
    for row, line in zip(rows, got, strict=True):
        tokens = torch.tensor([row])
        with torch.inference_mode():
            logprobs = model(tokens).logits[0].double().log_softmax(-1)
        want = [0.0] + logprobs[:-1].gather(1, tokens[0, 1:, None])[:, 0].tolist()
        differences = [abs(a - b) for a, b in zip(line["logprobs"], want, strict=True)]
        worst, total, count = max(worst, *differences, 0.0), total + sum(differences), count + len(row)
    checks.report("score = transformers, fp32", worst <= LOGPROB_LIMIT,
                  f"{count} tokens in {len(rows)} rows, worst difference {worst:.2e}, mean {total / count:.2e} (limit "
                  f"{LOGPROB_LIMIT})")


def greedy(model, auto, chat):
    prompt = auto.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=False)
    with torch.inference_mode():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW_TOKENS)
        response = out[:, prompt.shape[1]:]
        logprobs = model(out).logits[0, prompt.shape[1] - 1:-1].double().log_softmax(-1)
    return response[0].tolist(), logprobs.gather(1, response.T)[:, 0].tolist()


def check_generation(checks, args, model):
    auto = transformers.AutoTokenizer.from_pretrained(args.model)
    got = run_lines(args.hexad, "generate", args.model, [{"messages": chat} for chat in CHATS], "--greedy", "--json",
                    f"policy.generation.max_new_tokens={NEW_TOKENS}")
    want = [greedy(model, auto, chat) for chat in CHATS]
    ids, texts = [line["token_ids"] for line in got], [line["text"] for line in got]
    peer_ids = [response for response, _ in want]
    peer_texts = [auto.decode(response, skip_special_tokens=True) for response in peer_ids]
    checks.report("generate --greedy: ids = transformers", ids == peer_ids,
                  f"{len(ids)} chats, {sum(map(len, peer_ids))} tokens, {first_difference(ids, peer_ids)}")
    checks.report("generate --greedy: text = transformers", texts == peer_texts,
                  f"{len(texts)} chats, {first_difference(texts, peer_texts)}")
    if ids == peer_ids:
        worst = max(abs(a - b) for line, (_, row) in zip(got, want) for a, b in zip(line["logprobs"], row, strict=True))
        checks.report("generate --greedy: log-probs = transformers, fp32", worst <= LOGPROB_LIMIT,
                      f"worst difference {worst:.2e} (limit {LOGPROB_LIMIT})")
    one = run_program(args.hexad, "generate", args.model, "--prompt", CHATS[0][0]["content"], "--greedy",
                      f"policy.generation.max_new_tokens={NEW_TOKENS}")
    checks.report("generate --prompt: text = transformers", one == peer_texts[0] + "\n", repr(one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hexad", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--tokens", type=int, default=2000)
    args = parser.parse_args()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, tokenizers {tokenizers.__version__}")

    checks = Checks()
    documents = [open(path, encoding="utf-8").read()
                 for path in [f"{ROOT}/LICENSE", *sorted(glob.glob(f"{ROOT}/docs/*.md"))]]
    reader = gguf.GGUFReader(args.gguf)
    config = json.load(open(f"{args.model}/config.json", encoding="utf-8"))
    check_config(checks, args)
    check_tokenizer(checks, args, reader, documents)
    with tempfile.TemporaryDirectory() as folder:
        check_weights(checks, args, reader, config, folder)

    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    peer = tokenizers.Tokenizer.from_file(f"{args.model}/tokenizer.json")
    # From every document, so that the scored tokens are not one text only.
    share = -(-args.tokens // len(documents))
    ids = [token for text in documents for token in peer.encode(text).ids[:share]]
    ids += [token for text in documents for token in peer.encode(text).ids[share:]]
    check_scores(checks, args, model, ids)
    check_generation(checks, args, model)
    print(f"{checks.failed} checks failed" if checks.failed else "every check passed")
    sys.exit(checks.failed)


if __name__ == "__main__":
    main()
