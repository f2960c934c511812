"""Golden values for hearth's llama: losses, gradient norms and gradients from PyTorch.

    python make_golden.py          writes *.json beside this script

Needs torch, transformers and numpy. README.md defines every field."""
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from random_numbers import describe, make_rows, random_uniform  # noqa: E402

SCALE = 2.0**-4
WARMUP, LR_MAX, LR_MIN = 10, 1e-3, 1e-4


def parameter_names(layers, tied):
    names = ["model.embed_tokens.weight"]
    for i in range(layers):
        names += [f"model.layers.{i}.{part}.weight" for part in (
            "input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
            "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj",
            "mlp.down_proj")]
    return names + ["model.norm.weight"] + ([] if tied else ["lm_head.weight"])


def initialise(model, names):
    parameters = dict(model.named_parameters())
    assert sorted(parameters) == sorted(names)
    for k, name in enumerate(names):
        p = parameters[name]
        value = (random_uniform(k, p.numel()) - np.float32(0.5)) * np.float32(2 * SCALE)
        if p.dim() == 1:
            value = np.float32(1) + value
        p.data.copy_(torch.from_numpy(value).view(p.shape))
    return [parameters[name] for name in names]


def make_batch(case, step):
    rows = make_rows(case["vocab_size"], case["batch"], case["sequence_length"] + 1, step)
    tokens, targets = rows[:, :-1], rows[:, 1:].copy()
    starts = np.zeros_like(tokens)
    for row, cuts in enumerate(case["documents"]):
        for cut in cuts:
            starts[row, cut:] = cut
            targets[row, cut - 1] = -1  # the next document cannot be predicted
    for row, position in case["ignored"]:
        targets[row, position] = -1
    return tokens, targets, starts


def attention_mask(case, starts, dtype):
    """[B,1,T,T], 0 where query t sees key s: starts[t] <= s <= t and t - s <= window."""
    if case["window"] < 0 and not starts.any():
        return None
    t = np.arange(case["sequence_length"])
    distance = t[:, None] - t[None, :]
    seen = (distance >= 0) & (t[None, None, :] >= starts[:, :, None])
    if case["window"] >= 0:
        seen &= distance <= case["window"]
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill(~torch.from_numpy(seen), -math.inf)
    return mask[:, None]


def learning_rate(case, step):
    if step < WARMUP:
        return LR_MAX * (step + 1) / WARMUP
    progress = (step - WARMUP) / (case["steps"] - WARMUP)
    return LR_MIN + (LR_MAX - LR_MIN) * 0.5 * (1 + math.cos(math.pi * progress))


def run(case, attention="eager"):
    config = LlamaConfig(
        vocab_size=case["vocab_size"], hidden_size=case["hidden_size"],
        intermediate_size=case["intermediate_size"], num_hidden_layers=case["layers"],
        num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"],
        head_dim=case["head_dim"], max_position_embeddings=case["sequence_length"],
        rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=case["tied"],
        bos_token_id=None, eos_token_id=None, attn_implementation=attention)
    model = LlamaForCausalLM(config)
    names = parameter_names(case["layers"], case["tied"])
    masters = initialise(model, names)
    working = masters
    if case["precision"] == "bf16":
        model = LlamaForCausalLM(config).bfloat16()
        by_name = dict(model.named_parameters())
        working = [by_name[name] for name in names]
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in masters if p.dim() == 2], "weight_decay": 0.1},
         {"params": [p for p in masters if p.dim() == 1], "weight_decay": 0.0}],
        lr=LR_MAX, betas=(0.9, 0.95), eps=1e-8)

    losses, norms, rates, gradients = [], [], [], []
    for step in range(case["steps"]):
        tokens, targets, starts = make_batch(case, step)
        if working is not masters:
            for w, p in zip(working, masters):
                w.data.copy_(p.data)
                w.grad = None
        optimizer.zero_grad()
        logits = model(torch.from_numpy(tokens.copy()),
                       attention_mask=attention_mask(case, starts, working[0].dtype)).logits
        loss = F.cross_entropy(logits.float().reshape(-1, config.vocab_size),
                               torch.from_numpy(targets).reshape(-1), ignore_index=-1)
        loss.backward()
        if working is not masters:
            for w, p in zip(working, masters):
                p.grad = w.grad.float()
        if step == 0:
            gradients = [describe(k, name, p.grad)
                         for k, (name, p) in enumerate(zip(names, masters))]
        norm = torch.nn.utils.clip_grad_norm_(masters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(case, step)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
        rates.append(learning_rate(case, step))

    tokens, targets, starts = make_batch(case, 0)
    return {
        "precision": case["precision"],
        "config": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama",
            "vocab_size": case["vocab_size"], "hidden_size": case["hidden_size"],
            "intermediate_size": case["intermediate_size"], "num_hidden_layers": case["layers"],
            "num_attention_heads": case["heads"], "num_key_value_heads": case["kv_heads"],
            "head_dim": case["head_dim"], "max_position_embeddings": case["sequence_length"],
            "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
            "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": case["tied"]},
        "window": case["window"], "batch": case["batch"],
        "sequence_length": case["sequence_length"], "steps": case["steps"],
        "parameters": [{"name": n, "shape": list(p.shape)} for n, p in zip(names, masters)],
        "first_batch": {"tokens": tokens.tolist(), "targets": targets.tolist(),
                        "document_start": starts.tolist()},
        "learning_rates": rates, "losses": losses, "grad_norms": norms, "gradients": gradients}


SMALL = dict(layers=2, hidden_size=64, heads=4, kv_heads=2, head_dim=16, intermediate_size=96,
             vocab_size=257, sequence_length=33, batch=3, tied=False, steps=100, precision="fp32",
             window=-1, documents=[], ignored=[])
HEAD112 = dict(SMALL, hidden_size=224, heads=2, kv_heads=1, head_dim=112, sequence_length=7, batch=5,
               steps=20)
PACKED = dict(SMALL, steps=1, documents=[[1, 9, 20], [], [32]],
              ignored=[(0, 0), (1, 4), (1, 5), (2, 16)])
CASES = {
    "fp32": SMALL,
    "fp32_tied": dict(SMALL, tied=True),
    "fp32_head112": HEAD112,
    "bf16": dict(SMALL, precision="bf16"),
    "bf16_tied": dict(SMALL, precision="bf16", tied=True),
    "packed": PACKED,
    "window": dict(SMALL, steps=1, window=5),
    "packed_window": dict(PACKED, window=4),
}


def compact(value, depth=0):
    """JSON with one line for each member of the outer object, and for each item of lists of objects."""
    if depth == 0:
        return "{\n" + ",\n".join(f'"{k}": {compact(v, 1)}' for k, v in value.items()) + "\n}\n"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(v) for v in value) + "]"
    return json.dumps(value)


def main():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    folder = os.path.dirname(os.path.abspath(__file__))
    for name, case in CASES.items():
        result = run(case)
        again = run(case, attention="sdpa")
        spread = max(abs(a / b - 1) for a, b in zip(result["losses"], again["losses"]))
        with open(os.path.join(folder, name + ".json"), "w") as file:
            file.write(compact(result))
        print(f"{name}: loss {result['losses'][0]:.6f} -> {result['losses'][-1]:.6f}, "
              f"eager and sdpa attention within {spread:.1e}", file=sys.stderr)


if __name__ == "__main__":
    main()
