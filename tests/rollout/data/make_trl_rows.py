"""Writes trl_rows.json: what TRL's trainers make of a row of each format that they read, as token ids.

Run with TRL 1.16.0 (transformers 5.24.0, no torch needed):  python make_trl_rows.py ../../golden/tokenizers
The functions are TRL's own; what stands between them in `SFTTrainer`, `DPOTrainer` and `GRPOTrainer` is `example_of`.
"""
import copy
import json
import pathlib
import sys

from transformers import PreTrainedTokenizerFast
from trl.data_utils import (_tokenize, common_prefix_length, extract_prompt, is_conversational,
                            is_conversational_from_value, maybe_convert_to_chatml)

HERE = pathlib.Path(__file__).parent
TEMPLATE = {
    "llama3_style": "{{ bos_token }}{% if tools %}<|start_header_id|>tools<|end_header_id|>\n\n{{ tools | tojson }}"
    "<|eot_id|>{% endif %}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{% if m.tool_calls "
    "%}{% for c in m.tool_calls %}[{{ c.function.name }}({{ c.function.arguments | tojson }})]{% endfor %}"
    "{% elif m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    "qwen2_style": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% if not loop.last or "
    "add_generation_prompt %}{{ '\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% endif %}",
}

USER = [{"role": "user", "content": "What color is the sky?"}]
BLUE = [{"role": "assistant", "content": "It is blue."}]
GREEN = [{"role": "assistant", "content": "It is green."}]
TOOLS = [{"type": "function", "function": {"name": "ring", "description": "Rings.", "parameters": {"type": "object"}}}]
CALL = {"role": "assistant", "content": None,
        "tool_calls": [{"type": "function", "function": {"name": "ring", "arguments": {"times": 2}}}]}
PARTS = [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
         {"role": "user", "content": [{"type": "text", "text": "What color "}, {"type": "text", "text": "is it?"}]}]
EARLIER = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}] + USER
LISTENED = USER + [CALL, {"role": "tool", "content": "It rang."}]

# Name, what the rows are for, row, whether Qwen's tokenizer, which writes no token before a text, is asked too.
ROWS = [
    ("prompt", "prompts", {"prompt": "The sky is"}, True),
    ("prompt of messages", "prompts", {"prompt": USER}, True),
    ("prompt and a column of answers", "prompts", {"prompt": USER, "solution": "blue"}, True),
    ("prompt that ends with a tool's answer", "prompts", {"prompt": LISTENED, "tools": TOOLS}, False),
    ("prompt of parts", "prompts", {"prompt": PARTS}, False),
    ("prompt with earlier turns", "prompts", {"prompt": EARLIER}, True),
    ("text", "conversations", {"text": "The sky is blue."}, True),
    ("messages", "conversations", {"messages": USER + BLUE}, True),
    ("messages and tools", "conversations", {"messages": LISTENED + BLUE, "tools": TOOLS}, False),
    ("messages and tools as JSON text", "conversations",
     {"messages": LISTENED + BLUE, "tools": json.dumps(TOOLS)}, False),
    ("from and value", "conversations", {"conversations": [{"from": "user", "value": "What color is the sky?"},
                                                           {"from": "assistant", "value": "It is blue."}]}, True),
    ("prompt and completion", "conversations", {"prompt": "The sky is", "completion": " blue."}, True),
    ("tokens that merge over the end of the prompt", "conversations", {"prompt": "The ", "completion": "sky is"}, True),
    ("prompt and completion of messages", "conversations", {"prompt": USER, "completion": BLUE}, True),
    ("a completion after earlier turns", "conversations", {"prompt": EARLIER, "completion": BLUE}, True),
    ("a completion that calls a tool", "conversations",
     {"prompt": USER, "completion": [CALL, {"role": "tool", "content": "It rang."}] + BLUE}, False),
    ("pair", "pairs", {"prompt": "The sky is", "chosen": " blue.", "rejected": " green."}, True),
    ("pair, implicit prompt", "pairs", {"chosen": "The sky is blue.", "rejected": "The sky is green."}, True),
    ("pair, implicit prompt within a word", "pairs", {"chosen": "The sky is blue.", "rejected": "The sky is black."},
     True),
    ("pair of messages", "pairs", {"prompt": USER, "chosen": BLUE, "rejected": GREEN}, True),
    ("pair of messages, implicit prompt", "pairs", {"chosen": EARLIER + BLUE, "rejected": EARLIER + GREEN}, True),
    ("pair of messages that are the same", "pairs", {"chosen": USER + BLUE, "rejected": USER + BLUE}, True),
]


def with_end(text, tokenizer):
    return text if text.endswith(tokenizer.eos_token) else text + tokenizer.eos_token


def completed(tokenizer, prompt, completion, **options):
    """Ids of both together, and where those of the completion begin."""
    more = {"add_generation_prompt": True} if isinstance(prompt, list) else {}
    alone = _tokenize(tokenizer, prompt, **more, **options)["input_ids"]
    ids = _tokenize(tokenizer, prompt + completion, **options)["input_ids"]
    return ids, common_prefix_length(alone, ids)


def example_of(tokenizer, use, row):
    row = copy.deepcopy(row)
    tools = row.get("tools")
    tools = json.loads(tools) if isinstance(tools, str) else tools
    if use == "prompts":
        options = {"tools": tools, "add_generation_prompt": True} if isinstance(row["prompt"], list) else {}
        return {"ids": _tokenize(tokenizer, row["prompt"], **options)["input_ids"]}
    if use == "conversations":
        if is_conversational_from_value(row):
            row = maybe_convert_to_chatml(row)
        if not is_conversational(row):
            column = "text" if "text" in row else "completion"
            row[column] = with_end(row[column], tokenizer)
        options = {"tools": tools} if is_conversational(row) else {}
        if "prompt" not in row:
            return {"ids": _tokenize(tokenizer, row.get("messages", row.get("text")), **options)["input_ids"]}
        ids, begin = completed(tokenizer, row["prompt"], row["completion"], **options)
        return {"ids": ids, "completion": begin}
    if "prompt" not in row:
        row = extract_prompt(row)
    if not is_conversational(row):
        row["chosen"], row["rejected"] = (with_end(row[key], tokenizer) for key in ("chosen", "rejected"))
    return {key: completed(tokenizer, row["prompt"], row[key])[0] for key in ("chosen", "rejected")}


cases = []
for folder, template in TEMPLATE.items():
    tokenizer = PreTrainedTokenizerFast.from_pretrained(pathlib.Path(sys.argv[1]) / folder)
    tokenizer.chat_template = template
    for name, use, row, everywhere in ROWS:
        if everywhere or folder == "llama3_style":
            cases.append({"name": f"{folder}: {name}", "tokenizer": folder, "use": use, "row": row,
                          **example_of(tokenizer, use, row)})
lines = ",\n".join(json.dumps(case) for case in cases)
(HERE / "trl_rows.json").write_text('{"templates": ' + json.dumps(TEMPLATE) + ',\n"cases": [\n' + lines + "\n]}\n")
