"""Golden values for hearth's nanochat, from nanochat's own classes.

    python make_golden.py NANOCHAT      writes *.json beside this script

NANOCHAT is a copy of its repository. Needs torch and numpy. README.md defines every field."""
import json
import math
import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(FOLDER, os.pardir), sys.argv[1]]
from random_numbers import describe, make_rows, random_uniform  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
from nanochat.gpt import GPT, GPTConfig  # noqa: E402

DEPTH, HEAD_DIM, BATCH, T, VOCAB, STEPS = 4, 128, 2, 256, 300, 10
WARMUP, WARMDOWN, FLOOR = 3, 0.65, 0.05  # nanochat warms up over 40 steps
LOGIT_POSITIONS, LOGIT_STRIDE = [0, 1, 130, 255], 17

# Each parameter starts at centre + width * (u - 1/2). None is zero, so that every gradient is felt.
STARTS = {
    "wte.weight": (0, 2), "lm_head.weight": (0, 0.5), "value_embeds": (0, 0.5),
    "c_q.weight": (0, 0.25), "c_k.weight": (0, 0.25), "c_v.weight": (0, 0.25),
    "attn.c_proj.weight": (0, 0.125), "c_fc.weight": (0, 0.25), "mlp.c_proj.weight": (0, 0.0625),
    "ve_gate.weight": (0, 1), "smear_gate.weight": (0, 1), "resid_lambdas": (1.125, 0.125),
    "x0_lambdas": (0.125, 0.125), "smear_lambda": (0.5, 0), "backout_lambda": (0.25, 0)}


def build(depth=DEPTH, head_dim=HEAD_DIM, sequence_length=T, vocab=VOCAB, pattern="SSSL"):
    """As base_train does: on the meta device, of the width that depth and head dim give."""
    dim = (64 * depth + head_dim - 1) // head_dim * head_dim
    config = GPTConfig(sequence_len=sequence_length, vocab_size=vocab, n_layer=depth,
                       n_head=dim // head_dim, n_kv_head=dim // head_dim, n_embd=dim,
                       window_pattern=pattern)
    with torch.device("meta"):
        return GPT(config)


def start_of(name):
    return next(start for part, start in STARTS.items() if part in name)


def initialise(model):
    """The embeddings stay fp32 in bf16 too, so that their gradients are not added up in bf16."""
    model.to_empty(device="cpu")
    model.init_weights()
    for parameter in model.parameters():
        parameter.data = parameter.data.float()
    for k, (name, parameter) in enumerate(model.named_parameters()):
        centre, width = start_of(name)
        values = np.float32(centre) + (random_uniform(k, parameter.numel()) - np.float32(0.5)) * np.float32(width)
        parameter.data.copy_(torch.from_numpy(values).view(parameter.shape))


def derive(model, pattern):
    """base_train's scale of all rates and its weight decay, for this batch."""
    def scaling_parameters(m):
        counts = m.num_scaling_params()
        return counts["transformer_matrices"] + counts["lm_head"]
    target, reference = 12 * scaling_parameters(model), 12 * scaling_parameters(build(12, pattern=pattern))
    scale = (BATCH * T / 2**19) ** 0.5
    return scale, 0.28 * scale * (reference / target)


def schedule(step):
    """base_train's, with a shorter warm-up: what rates and weight decay are multiplied by; momentum."""
    warmdown = round(WARMDOWN * STEPS)
    if step < WARMUP:
        rate = (step + 1) / WARMUP
    elif step <= STEPS - warmdown:
        rate = 1.0
    else:
        progress = (STEPS - step) / warmdown
        rate = progress + (1 - progress) * FLOOR
    momentum = (1 - step / 400) * 0.85 + step / 400 * 0.97
    return rate, momentum, 0.5 * (1 + math.cos(math.pi * step / STEPS))


def batch(step):
    rows = make_rows(VOCAB, BATCH, T + 1, step)
    return torch.from_numpy(rows[:, :-1].copy()), torch.from_numpy(rows[:, 1:].copy())


def some_logits(model):
    with torch.no_grad():
        logits = model(batch(0)[0])[0]
    return [{"position": t, "values": logits[t, ::LOGIT_STRIDE].tolist()} for t in LOGIT_POSITIONS]


def train(precision, pattern):
    model = build(pattern=pattern)
    initialise(model)
    named = list(model.named_parameters())
    result = {
        "precision": precision, "depth": DEPTH, "head_dim": HEAD_DIM, "vocab": VOCAB,
        "window_pattern": pattern, "batch": BATCH, "sequence_length": T,
        "parameters": [dict(zip(("name", "shape", "centre", "width"),
                                (n, list(p.shape), *start_of(n)))) for n, p in named],
        "logit_stride": LOGIT_STRIDE, "logits": some_logits(model), "losses": []}
    starts = [p.detach().clone() for _, p in named]
    scale, decay = derive(model, pattern)
    optimizer = model.setup_optimizer(
        unembedding_lr=0.008 * scale, embedding_lr=0.3 * scale, matrix_lr=0.02 * scale,
        scalar_lr=0.5 * scale, weight_decay=decay)
    schedules = [schedule(step) for step in range(STEPS)]
    for step in range(STEPS if precision == "fp32" else 1):
        loss = model(*batch(step))
        loss.backward()
        result["losses"].append(loss.item())
        if step == 0:
            result["gradients"] = [describe(k, n, p.grad) for k, (n, p) in enumerate(named)]
        rate, momentum, weight_decay = schedules[step]
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * rate
            if group["kind"] == "muon":
                group["momentum"], group["weight_decay"] = momentum, weight_decay * decay
        optimizer.step()
        model.zero_grad(set_to_none=True)
    if precision == "fp32":
        result["matrix_rates"] = [0.02 * scale * rate for rate, _, _ in schedules]
        result["momenta"] = [momentum for _, momentum, _ in schedules]
        result["weight_decays"] = [decay * weight_decay for _, _, weight_decay in schedules]
        result["trained"] = [describe(k, n, p) for k, (n, p) in enumerate(named)]
        result["changes"] = [describe(k, n, p - start)
                             for k, ((n, p), start) in enumerate(zip(named, starts))]
    return result


def count(**sizes):
    model = build(**sizes)
    return {**sizes, **model.num_scaling_params(), "flops": model.estimate_flops()}


def counts():
    usual = dict(head_dim=128, sequence_length=2048, vocab=32768, pattern="SSSL")
    others = [dict(head_dim=64, sequence_length=512), dict(head_dim=96, pattern="SL"),
              dict(sequence_length=1000, pattern="L", vocab=50257), dict(sequence_length=100),
              dict(head_dim=32, sequence_length=16384, pattern="LLS", vocab=32759)]
    cases = [dict(usual, depth=depth) for depth in range(4, 35)]
    cases += [dict(usual, depth=depth, **other) for depth in (6, 7, 12) for other in others]
    return {"counts": [count(**case) for case in cases]}


def compact(value):
    """JSON with one line for each member of the outer object, and for each item of lists of objects."""
    lines = []
    for key, member in value.items():
        text = json.dumps(member)
        if isinstance(member, list) and member and isinstance(member[0], dict):
            text = "[\n" + ",\n".join(json.dumps(item) for item in member) + "]"
        lines.append(f'"{key}": {text}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(name, value):
    with open(os.path.join(FOLDER, name + ".json"), "w") as file:
        file.write(compact(value))
    print(f"{name}.json", *value.get("losses", []), file=sys.stderr)


def main():
    """nanochat takes its precision from the environment, so each has a process of its own."""
    if len(sys.argv) == 2:
        for precision in ("float32", "bfloat16"):
            environment = dict(os.environ, NANOCHAT_DTYPE=precision, TORCHDYNAMO_DISABLE="1")
            subprocess.run([sys.executable, *sys.argv, precision], env=environment, check=True)
        return
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    precision = {"float32": "fp32", "bfloat16": "bf16"}[sys.argv[2]]
    for pattern in ("SSSL", "L"):
        write(f"{precision}_{pattern}", train(precision, pattern))
    if precision == "fp32":
        write("counts", counts())


if __name__ == "__main__":
    main()
