#!/usr/bin/env python3
"""What stands beside Hexad in benchmarks/cpu_table.py, in a process that works when it is asked to.

    PEER_PYTHON benchmarks/cpu_peer.py transformers|vllm|trl MODEL_DIR [--threads 2] ...

A line of standard input is a request, {"do": NAME, ...}; a line of standard output that begins with "RESULT " its
answer, with "seconds" and "cpu_seconds" where it is timed. transformers does train, logprobs and generate, vllm does
generate, trl a step of GRPOTrainer. Peaks of memory are the kernel's (VmHWM).
"""
import argparse
import contextlib
import json
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def answer(value):
    sys.__stdout__.write("RESULT " + json.dumps(value) + "\n")
    sys.__stdout__.flush()


def requests():
    for line in sys.stdin:
        yield json.loads(line)


@contextlib.contextmanager
def timed(result):
    start, used = time.perf_counter(), time.process_time()
    yield
    result.update(seconds=time.perf_counter() - start, cpu_seconds=time.process_time() - used)


def peak_bytes():
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))


class Transformers:
    """A causal model in fp32, trained with AdamW; --autocast: its products in bf16, as TRL's bf16=True has them."""

    def __init__(self, args):
        import torch
        from transformers import AutoModelForCausalLM
        torch.set_num_threads(args.threads)
        self.torch, self.model = torch, AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
        self.model.generation_config.eos_token_id = None  # all sequences go on, as the others' do, and may hold it
        self.optimizer = None
        self.autocast = lambda: torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.autocast)

    def logprobs(self, rows, exact=True):
        """Of each row's tokens, given those before; 0 for the first. How far below the best each lies. Exact: fp32."""
        torch, found, below = self.torch, [], []
        with torch.inference_mode(), contextlib.nullcontext() if exact else self.autocast():
            for row in rows:
                ids = torch.tensor([row])
                logprobs = self.model(ids).logits[0, :-1].float().log_softmax(-1)
                picked = logprobs.gather(1, ids[0, 1:, None])[:, 0]
                found.append([0.0] + picked.tolist())
                below.append([0.0] + (logprobs.max(-1).values - picked).tolist())
        return {"logprobs": found, "below_best": below}

    def train(self, rows, advantages, micro_batch, lr):
        """A policy gradient step at ratio 1 over rows of one length; the first quarter of a row is its prompt."""
        torch = self.torch
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=0.0, fused=True)
        result, ids, weight = {"loss": 0.0}, torch.tensor(rows), torch.tensor(advantages)
        mask = torch.ones_like(weight)
        mask[:, : max(1, ids.shape[1] // 4)] = 0
        self.model.train()
        with timed(result):
            for begin in range(0, len(rows), micro_batch):
                part = slice(begin, begin + micro_batch)
                with self.autocast():
                    logits = self.model(ids[part]).logits[:, :-1].float()
                logprobs = -torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[part, 1:].flatten(),
                                                              reduction="none").view(-1, ids.shape[1] - 1)
                ratio = (logprobs - logprobs.detach()).exp()
                loss = -(ratio * weight[part, 1:] * mask[part, 1:]).sum() / mask.sum()
                loss.backward()
                result["loss"] += loss.item()
            result["grad_norm"] = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0).item()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.model.eval()
        return result

    def generate(self, prompts, new_tokens, temperature, seed):
        torch, result = self.torch, {}
        ids = torch.tensor(prompts)  # of one length
        sampling = {"do_sample": True, "temperature": temperature, "top_k": 0,
                    "top_p": 1.0} if temperature else {"do_sample": False}
        torch.manual_seed(seed)
        with timed(result), torch.inference_mode():
            out = self.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens,
                                      pad_token_id=0, **sampling)
        result["tokens"] = out[:, ids.shape[1]:].tolist()
        return result

    def serve(self):
        answer({"ready": True})
        for request in requests():
            answer(getattr(self, request.pop("do"))(**request))


class Vllm:
    def __init__(self, args):
        os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind", VLLM_NO_USAGE_STATS="1",
                          OMP_NUM_THREADS=str(args.threads),
                          VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_HOST_IP="127.0.0.1", GLOO_SOCKET_IFNAME="lo",
                          VLLM_LOGGING_LEVEL="WARNING")
        from vllm import LLM, SamplingParams
        self.parameters = SamplingParams
        self.engine = LLM(args.model, dtype="float32", max_model_len=1024, max_num_seqs=args.sequences,
                          enforce_eager=args.eager, enable_prefix_caching=False)

    def generate(self, prompts, new_tokens, temperature, seed):
        """With the log-prob of every token, as training needs it."""
        result = {}
        sampling = [self.parameters(temperature=temperature, max_tokens=new_tokens, ignore_eos=True,
                                    seed=seed * len(prompts) + i if temperature else None, logprobs=0)
                    for i in range(len(prompts))]
        with timed(result):
            outputs = self.engine.generate([{"prompt_token_ids": prompt} for prompt in prompts], sampling,
                                           use_tqdm=False)
        completions = [output.outputs[0] for output in outputs]
        result["tokens"] = [list(completion.token_ids) for completion in completions]
        result["logprobs"] = [[step[token].logprob for step, token in zip(completion.logprobs, completion.token_ids)]
                              for completion in completions]
        return result

    def serve(self):
        answer({"ready": True})
        for request in requests():
            answer(getattr(self, request.pop("do"))(**request))


def train_with_trl(args):
    """GRPOTrainer on one-digit addition, as configs/smollm2_arithmetic.yaml; each request is a step."""
    sys.modules["vllm"] = None  # vLLM shares this environment: it would be loaded, and count
    import re
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer
    torch.set_num_threads(args.threads)
    rows = [{"prompt": [{"role": "user", "content": f"What is {a} + {b}? Answer with only the number."}],
             "answer": str(a + b)} for a in range(10) for b in range(10)]

    def reward(completions, answer, completion_ids, **_):
        def right(text, ids, wanted):
            numbers = re.findall(r"-?\d+", text)
            return float(ids[-1] == tokenizer.eos_token_id and bool(numbers) and numbers[-1] == wanted)
        return [right(completion[0]["content"], ids, wanted) for completion, ids,
                wanted in zip(completions, completion_ids, answer)]

    class OnRequest(TrainerCallback):
        def on_step_begin(self, *_, **__):
            next(asked)
            self.result = {}
            self.timer = timed(self.result)
            self.timer.__enter__()

        def on_step_end(self, *_, **__):
            self.timer.__exit__(None, None, None)

        def on_log(self, _, state, __, logs=None, **___):
            if not logs or "reward" not in logs:
                return
            wanted = {"reward": "reward", "response_tokens": "completions/mean_length", "loss": "loss",
                      "grad_norm": "grad_norm"}
            answer(self.result | {name: logs[key] for name, key in wanted.items()} | {"peak_bytes": peak_bytes()})

    asked = requests()
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    samples = args.prompts * args.samples
    micro_batch = min(args.micro_batch, samples)
    config = GRPOConfig(output_dir=args.scratch, per_device_train_batch_size=micro_batch,
                        gradient_accumulation_steps=samples // micro_batch, num_generations=args.samples,
                        max_completion_length=args.new_tokens, learning_rate=args.lr, max_steps=args.steps,
                        logging_steps=1, save_strategy="no", report_to=[], use_cpu=True,
                        bf16=False, gradient_checkpointing=False, temperature=1.0, beta=0.0,
                        lr_scheduler_type="constant", disable_tqdm=True)  # its default computes activations twice
    trainer = GRPOTrainer(model=args.model, reward_funcs=reward, args=config, train_dataset=Dataset.from_list(rows),
                          processing_class=tokenizer, callbacks=[OnRequest()])
    answer({"ready": True, "dtype": str(next(trainer.model.parameters()).dtype)})
    trainer.train()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("transformers", "vllm", "trl"))
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequences", type=int, default=32, help="vllm: that run at once")
    parser.add_argument("--autocast", action="store_true", help="transformers: bf16")
    parser.add_argument("--eager", action="store_true", help="vllm: without torch.compile")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--micro-batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-6)
    parser.add_argument("--scratch", default="")
    args = parser.parse_args()
    sys.stdout = sys.stderr  # answers alone go to the standard output
    if args.peer == "trl":
        train_with_trl(args)
    else:
        (Vllm if args.peer == "vllm" else Transformers)(args).serve()


if __name__ == "__main__":
    main()
