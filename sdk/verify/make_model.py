#!/usr/bin/env python3
"""Writes the models that backends and generators are verified with. usage: make_model.py DIRECTORY

DIRECTORY/model is a tiny Llama; DIRECTORY/experts the config.json of one with experts, whose weights a backend makes.
Standard library only; the same bytes on every machine."""
import array, json, os, random, struct, sys

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, MLP = 32, 32, 2, 4, 2, 64
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32", "vocab_size": VOCAB,
    "hidden_size": HIDDEN, "intermediate_size": MLP, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
    "bos_token_id": 0, "eos_token_id": 0,
}
EXPERTS = CONFIG | {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "head_dim": HIDDEN // HEADS, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "norm_topk_prob": True,
}


def shapes():
    yield "model.embed_tokens.weight", [VOCAB, HIDDEN]
    head = HIDDEN // HEADS
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [HIDDEN]
        yield at + "self_attn.q_proj.weight", [HIDDEN, HIDDEN]
        yield at + "self_attn.k_proj.weight", [KV_HEADS * head, HIDDEN]
        yield at + "self_attn.v_proj.weight", [KV_HEADS * head, HIDDEN]
        yield at + "self_attn.o_proj.weight", [HIDDEN, HIDDEN]
        yield at + "post_attention_layernorm.weight", [HIDDEN]
        yield at + "mlp.gate_proj.weight", [MLP, HIDDEN]
        yield at + "mlp.up_proj.weight", [MLP, HIDDEN]
        yield at + "mlp.down_proj.weight", [HIDDEN, MLP]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCAB, HIDDEN]


def write_config(directory, config):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w") as out:
        json.dump(config, out, indent=2)


def main(directory):
    model = os.path.join(directory, "model")
    source, header, data = random.Random(1), {}, array.array("f")
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        begin = 4 * len(data)
        # Norms scale by about 1; matrices keep the size of what goes through them.
        data.extend(1.0 if len(shape) == 1 else source.gauss(0, shape[-1] ** -0.5) for _ in range(count))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, 4 * len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_config(os.path.join(directory, "experts"), EXPERTS)
    write_config(model, CONFIG)
    with open(os.path.join(model, "model.safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data.tobytes())


if __name__ == "__main__":
    main(sys.argv[1])
