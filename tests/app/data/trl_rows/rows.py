"""The rows of each format, and what of them TRL is given where it does not know the format."""
from dataclasses import dataclass
from typing import Callable, Optional

from trl.data_utils import maybe_convert_to_chatml


@dataclass
class Format:
    rows: list
    uses: tuple
    flat: bool = False  # the columns are texts: CSV and TSV hold them too
    models: tuple = ("qwen", "llama")
    as_trl: Optional[Callable] = None     # a row as TRL reads it
    as_prompt: Optional[Callable] = None  # the same for GRPO


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def system(content):
    return {"role": "system", "content": content}


def asked(row):
    return {"prompt": row["prompt"]}


# All but an answer at the end is prompt.
def before_answer(row):
    messages = row["messages"]
    if messages[-1]["role"] == "assistant" and not messages[-1].get("tool_calls"):
        messages = messages[:-1]
    return {"prompt": messages, **({"tools": row["tools"]} if "tools" in row else {})}


def question_and_answer(row):
    return {"prompt": [user(row["question"])], "completion": [assistant(row["answer"])]}


def alpaca(row):
    question = row["instruction"] + ("\n" + row["input"] if row["input"] else "")
    return {"prompt": [user(question)], "completion": [assistant(row["output"])]}


NAMES = {"human": "user", "gpt": "assistant", "system": "system"}


def share_gpt(row):
    messages = [{"role": NAMES[turn["from"]], "content": turn["value"]} for turn in row["conversations"]]
    return {"messages": ([system(row["system"])] if row["system"] else []) + messages}


def joined_parts(row):
    def text(message):
        content = message["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)
    return {"messages": [{"role": message["role"], "content": text(message)} for message in row["messages"]]}


TALKS = [
    [user("What is 6 times 7?"), assistant("42")],
    [system("You answer in German, \"kurz\"."), user("How are you?\n\n  Well?"), assistant("Gut, danke 🙂"),
     user("日本?"), assistant("Land der aufgehenden Sonne, naïve Übersetzung.")],
    [user("Write\tcode"), assistant("```\nint main() { return 0; }\n```"), user("Thanks"),
     assistant("You're welcome. ")],
]
PAIRS = [
    ([user("Is the sky blue?")], "Yes, it is blue.", "Yes, it is green."),
    ([system("Be brief."), user("Größe?\n"), assistant("Which?"), user("日本")], "377.975 km²", "I do not know 🙂"),
    ([user("Say \"a, b\"")], "a, b", "\"a\",\n\"b\""),
]
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather of a town.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string", "description": "größere Stadt"}},
                   "required": ["town"]}}}
CLOCK = {"type": "function", "function": {
    "name": "clock", "description": "The time.",
    "parameters": {"type": "object", "properties": {"zone": {"type": "integer"}, "exact": {"type": "boolean"}}}}}


def call(name, **arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def calls(content, *made):
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def result(text):
    return {"role": "tool", "content": text}


# As datasets keeps them: several tools and arguments of several names are Json there.
TOOL_TALKS = [
    {"messages": [user("Weather in Köln?"), calls(None, call("weather", town="Köln")), result('{"sky": "grau"}'),
                  assistant("Grey.")], "tools": [WEATHER, CLOCK]},
    {"messages": [system("Use tools."), user("When, and how is it?"),
                  calls("I look.", call("clock", zone=-1, exact=True), call("weather", town="Rom")),
                  result("12:00"), result("sunny"), assistant("Noon, sunny."), user("And tomorrow?"),
                  calls(None, call("clock"))], "tools": [CLOCK, WEATHER]},
    {"messages": [user("Hello"), assistant("Hello! <no tool>")], "tools": [WEATHER]},
]
# As columns of one type: what a message or a call has not is null.
PLAIN_CALLS = [
    {"messages": [user("Weather in Köln?"), calls(None, call("weather", town="Köln")), result("grau"),
                  assistant("Grey.")], "tools": [WEATHER]},
    {"messages": [user("Rom?"), calls("I look.", call("weather", town="Rom")), result("sunny")], "tools": [WEATHER]},
]


def parts(*texts):
    return [{"type": "text", "text": text} for text in texts]


PART_TALKS = [
    {"messages": [{"role": "user", "content": parts("What is ", "6 times 7?")}, {"role": "assistant",
                                                                                "content": parts("42")}]},
    {"messages": [{"role": "system", "content": parts("Kurz.")}, {"role": "user", "content": parts("Größe?\n")},
                  {"role": "assistant", "content": parts("Gut", ", danke")}]},
]

FORMATS = {
    "question_answer": Format(
        [{"question": "6 times 7?", "answer": "42"}, {"question": "Say \"a, b\"\nthen stop", "answer": "7"},
         {"question": "größer als 日本? 🙂", "answer": "123"}],
        ("sft", "grpo"), flat=True, as_trl=question_and_answer, as_prompt=asked),
    "prompt": Format(
        [{"prompt": "The sky is"}, {"prompt": "Größe,\n\"quoted\"\tand 日本 "}, {"prompt": " 7"}], ("grpo",), flat=True),
    "prompt_messages": Format(
        [{"prompt": talk[:-1]} for talk in TALKS], ("grpo",)),
    "prompt_tool_answer": Format(
        [{"prompt": talk["messages"][:-1], "tools": talk["tools"]} for talk in (TOOL_TALKS[0], PLAIN_CALLS[0])],
        ("grpo",), models=("qwen",)),
    "prompt_completion": Format(
        [{"prompt": "The sky is", "completion": " blue."}, {"prompt": "Größe,\n\"quoted\"", "completion": "\t日本 🙂\n"},
         {"prompt": "1, 2, ", "completion": "3, 4"}], ("sft", "grpo"), flat=True, as_prompt=asked),
    "empty_completion": Format(
        [{"prompt": "The sky is", "completion": " blue."}, {"prompt": "Nothing:", "completion": ""}], ("sft",)),
    "prompt_completion_messages": Format(
        [{"prompt": talk[:-1], "completion": talk[-1:]} for talk in TALKS], ("sft", "grpo"), as_prompt=asked),
    "completion_with_tools": Format(
        [{"prompt": PLAIN_CALLS[0]["messages"][:1], "completion": PLAIN_CALLS[0]["messages"][1:], "tools": [WEATHER]},
         {"prompt": TOOL_TALKS[2]["messages"][:1], "completion": TOOL_TALKS[2]["messages"][1:], "tools": [WEATHER]}],
        ("sft",), models=("qwen",)),
    "messages": Format([{"messages": talk} for talk in TALKS], ("sft", "grpo"), as_prompt=before_answer),
    "leading_space": Format(
        [{"messages": [user(f"{number} times 7?"), assistant(f"  {number}")]} for number in (6, 8)], ("sft",),
        models=("qwen",)),
    "messages_tools": Format(TOOL_TALKS, ("sft", "grpo"), models=("qwen",), as_prompt=before_answer),
    "messages_parts": Format(PART_TALKS, ("sft", "grpo"), as_trl=joined_parts, as_prompt=before_answer),
    "conversations": Format(
        [{"conversations": [{"from": message["role"], "value": message["content"]} for message in talk]}
         for talk in TALKS], ("sft", "grpo"), as_trl=maybe_convert_to_chatml, as_prompt=before_answer),
    "share_gpt": Format(
        [{"system": "Be brief.", "conversations": [{"from": "human", "value": "6 times 7?"},
                                                   {"from": "gpt", "value": "42"}]},
         {"system": None, "conversations": [{"from": "system", "value": "Kurz."}, {"from": "human", "value": "Größe?"},
                                            {"from": "gpt", "value": "日本\n"}]}],
        ("sft", "grpo"), as_trl=share_gpt, as_prompt=before_answer),
    "alpaca": Format(
        [{"instruction": "Add the numbers.", "input": "6, 7", "output": "13"},
         {"instruction": "Sag \"hallo\",\nbitte.", "input": "zu 日本", "output": "hallo, 日本 🙂"}],
        ("sft", "grpo"), flat=True, as_trl=alpaca, as_prompt=asked),
    "text": Format(
        [{"text": "All of it trains."}, {"text": "Größe,\n\"quoted\"\t日本 🙂\n"}, {"text": "42 "}], ("sft",), flat=True),
    "pairs": Format(
        [{"prompt": "The sky is", "chosen": " blue.", "rejected": " green."},
         {"prompt": "Größe,\n\"quoted\"", "chosen": "\t日本", "rejected": " 🙂\n"},
         {"prompt": "Pick one: ", "chosen": "a word", "rejected": "7"}], ("dpo", "rm"), flat=True),
    "pairs_implicit": Format(
        [{"chosen": "The sky is blue.", "rejected": "The sky is green."},
         {"chosen": "Größe ist ä, ja", "rejected": "Größe ist ö"},
         {"chosen": "\"quoted\"\n1, 2", "rejected": "\"quoted\"\n1, 3 🙂"}], ("dpo", "rm"), flat=True),
    "pairs_messages": Format(
        [{"prompt": prompt, "chosen": [assistant(better)], "rejected": [assistant(worse)]}
         for prompt, better, worse in PAIRS], ("dpo", "rm")),
    "pairs_messages_implicit": Format(
        [{"chosen": prompt + [assistant(better)], "rejected": prompt + [assistant(worse)]}
         for prompt, better, worse in PAIRS], ("dpo", "rm")),
}

# Rows that are refused: types that no algorithm here trains on, and columns that two readings would fit.
REFUSED = {
    "unpaired": [{"prompt": "The sky is", "completion": " blue.", "label": True},
                 {"prompt": "The sky is", "completion": " green.", "label": False}],
    "stepwise": [{"prompt": "Which is larger?", "completions": ["11 > 8.", "So 9.8."], "labels": [True, False]}],
    "two_prompts": [{"prompt": "6 times 7?", "question": "6 times 7?", "answer": "42"}],
    "two_answers": [{"question": "6 times 7?", "solution": "6 + 6 is 12", "answer": "42"}],
    "messages_and_prompt": [{"messages": [user("6 times 7?"), assistant("42")], "prompt": "6 times 7?"}],
    "empty_cell": [{"prompt": "The sky is", "completion": " blue."}, {"prompt": "Nothing:", "completion": None}],
}
