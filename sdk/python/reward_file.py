"""Calls a reward function of a user's own file. Hexad starts copies of this for `env.NAME.python`, and writes each a
line of JSON with a list of requests; the answer is a line with a list of answers (docs/rewards.md).

What the function is called with is decided by the names of its parameters:
  completions, and prompts, step, num_steps, trainer_state, columns ...   lists, a list comes back (TRL's)
  data_source, solution_str, ground_truth, extra_info                     one sample, a number or a dict (verl's)
  data_sources, solution_strs, ground_truths, extra_infos                 lists of these
"""

import asyncio
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback
import types

OPTIONS = json.loads(sys.argv[1])  # file, function, components, conversational
OWN = inspect.currentframe().f_code.co_filename  # "<string>": our frames are not the user's
VERL = ["data_source", "solution_str", "ground_truth", "extra_info"]
USUAL = ["reward", "reward_func", "reward_function", "compute_score"]
NEVER_GIVEN = ["completion_ids", "prompt_ids", "completions_ids", "prompts_ids", "log_extra", "log_metric"]


class Refused(Exception):
    """What the user can mend, in one sentence."""


def own_pipes():
    """The requests and the answers, out of reach of the function and what it starts."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # print() goes to the log of the run, at once
    return requests, answers


def load(file):
    name = os.path.splitext(os.path.basename(file))[0]
    sys.path[0] = os.path.dirname(os.path.abspath(file))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None:
        raise Refused(f"{file} is no Python file: its name has to end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def choose(module, file, wanted):
    """The function of this name; without a name the only one of the file, or the one with a usual name."""
    own = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")
           and getattr(value, "__module__", None) == module.__name__ and not inspect.isclass(value)]
    if wanted:
        found = getattr(module, wanted, None)
        if not callable(found):
            raise Refused(f"{file} has no function '{wanted}'; it has: {', '.join(own) or 'none'}")
        return found
    usual = [name for name in own if name in USUAL]
    one = own if len(own) == 1 else usual
    if len(one) != 1:
        raise Refused(f"{file} has {'no function' if not own else 'the functions ' + ', '.join(own)}: "
                      f"{'define reward(completions, **columns)' if not own else f'say which, as {file}:{own[0]}'}")
    return getattr(module, one[0])


def columns_of(requests):
    names = {}
    for request in requests:
        names.update(dict.fromkeys(request["metadata"]))
    return {name: [request["metadata"].get(name) for request in requests] for name in names}


def conversation(role, text):
    return [{"role": role, "content": text}] if OPTIONS["conversational"] else text


def lists_for(function, name, requests):
    """TRL's keyword arguments. The expected answers have the name of the one parameter that nothing else has."""
    parameters = inspect.signature(function).parameters.values()
    answers, first = [request["ground_truth"] for request in requests], requests[0]
    given = columns_of(requests)
    for usual in ("answer", "solution"):
        given.setdefault(usual, answers)
    given.update(
        prompts=[conversation("user", request["prompt"]) for request in requests],
        completions=[conversation("assistant", request["response"]) for request in requests],
        ground_truth=answers,
        truncated=[request["truncated"] for request in requests],
        step=first["step"],
        num_steps=first.get("num_steps"),
        trainer_state=types.SimpleNamespace(global_step=first["step"], max_steps=first.get("num_steps")),
    )
    if any(parameter.kind == parameter.VAR_POSITIONAL for parameter in parameters):
        raise Refused(f"{name} takes *args; wanted names: reward(completions, **columns)")
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty
                and parameter.kind != parameter.VAR_KEYWORD]
    missing = [each for each in required if each not in given]
    if len(missing) == 1 and missing[0] not in NEVER_GIVEN:
        given[missing.pop()] = answers
    if missing:
        raise Refused(f"{name} wants {', '.join(missing)}; there are: {', '.join(sorted(given))}")
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        names = {parameter.name for parameter in parameters}
        given = {key: value for key, value in given.items() if key in names}
    positional = [given.pop(parameter.name) for parameter in parameters if parameter.kind == parameter.POSITIONAL_ONLY]
    return positional, given


def verl_values(request):
    metadata = request["metadata"]
    extra = metadata.get("extra_info")
    return [metadata.get("data_source"), request["response"], request["ground_truth"],
            extra if isinstance(extra, dict) else metadata]


def called(function, name, requests):
    parameters = inspect.signature(function).parameters
    takes_all = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values())

    def call(keys, values):
        return run(function, [], {key: value for key, value in zip(keys, values) if takes_all or key in parameters})

    if "solution_strs" in parameters:
        return call([key + "s" for key in VERL], map(list, zip(*map(verl_values, requests))))
    if "solution_str" in parameters:
        return [call(VERL, verl_values(request)) for request in requests]
    return run(function, *lists_for(function, name, requests))


def run(function, positional, named):
    result = function(*positional, **named)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def number(value, what):
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        result = float(value)  # a bool, numpy's and torch's numbers too
    except (TypeError, ValueError):
        raise Refused(f"{what} is {value!r:.80}, wanted a number, or None where the reward does not apply") from None
    if not math.isfinite(result):
        raise Refused(f"{what} is {result}, wanted a finite number")
    return result


def answer_of(request, score, what):
    if score is None:
        return {"id": request["id"], "applies": False, "reason": f"{what} is None"}
    if not isinstance(score, dict):
        return {"id": request["id"], "reward": number(score, what)}
    reward = score.get("score", score.get("reward"))
    if reward is None:
        raise Refused(f"{what} is a dict without 'score': {score!r:.80}")
    parts = {name: number(score.get(name), f"'{name}' of {what}") for name in OPTIONS["components"]}
    return {"id": request["id"], "reward": number(reward, what), "components": parts}


def answers_of(function, name, requests):
    scores = called(function, name, requests)
    try:
        scores = list(scores)
    except TypeError:
        raise Refused(f"{name} returned {scores!r:.80}, wanted a list with a score for each completion") from None
    if len(scores) != len(requests):
        raise Refused(f"{name} returned {len(scores)} scores for {len(requests)} completions")
    return [answer_of(request, score, f"score {i} of {name}")
            for i, (request, score) in enumerate(zip(requests, scores))]


def explain(error):
    """The traceback without our own frames and importlib's; last what is wrong, which the run's error ends with."""
    if isinstance(error, Refused):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename != OWN and not frame.filename.startswith("<frozen importlib")]
    lines = traceback.format_list(frames[-6:]) + traceback.format_exception_only(type(error), error)
    hint = ""
    if isinstance(error, TypeError) and "string ind" in str(error) and not OPTIONS["conversational"]:
        hint = "\ncompletions are texts; for [{'role': 'assistant', 'content': ...}] each set conversational: true"
    return "".join(lines).rstrip() + hint


def main():
    requests, answers = own_pipes()
    file = OPTIONS["file"]
    try:
        function = choose(load(file), file, OPTIONS["function"])
        name = f"{getattr(function, '__name__', OPTIONS['function'])} of {file}"
        for line in requests:
            batch = json.loads(line)
            result = answers_of(function, name, batch if isinstance(batch, list) else [batch])
            answers.write(json.dumps(result if isinstance(batch, list) else result[0]) + "\n")
            answers.flush()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit of the file, too
        sys.stderr.write(explain(error) + "\n")
        sys.stderr.flush()
        os._exit(1)


main()
