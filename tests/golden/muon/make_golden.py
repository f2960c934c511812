"""Golden values for Muon: matrices after ten updates by nanochat's own optimizer, in fp32.

    python make_golden.py NANOCHAT     writes muon.json beside this script

NANOCHAT is a checkout of https://github.com/karpathy/nanochat. Needs torch and numpy. Matrix k starts as
(random_uniform(SEED, k, i) - 1/2) / 4; its gradient of step s (from 1) is
(random_uniform(SEED, 100 s + k, i) - 1/2) / 16."""
import json
import os
import sys

os.environ["TORCHDYNAMO_DISABLE"] = "1"
os.environ["NANOCHAT_DTYPE"] = "float32"
sys.path.insert(0, sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir))
import numpy as np  # noqa: E402
import torch  # noqa: E402
from nanochat.optim import MuonAdamW  # noqa: E402
from random_numbers import random_uniform  # noqa: E402

SHAPES = [(5, 7), (7, 5), (6, 6), (3, 12), (12, 3), (1, 1)]
STEPS, RATE, BETA2, WEIGHT_DECAY = 10, 0.02, 0.9, 0.28


def draw(stream, shape, scale):
    values = (random_uniform(stream, shape[0] * shape[1]) - np.float32(0.5)) * np.float32(scale)
    return torch.from_numpy(values).view(shape)


matrices = [torch.nn.Parameter(draw(k, shape, 1 / 4)) for k, shape in enumerate(SHAPES)]
optimizer = MuonAdamW([dict(kind="muon", params=[p], lr=RATE, momentum=0.95, ns_steps=5,
                            beta2=BETA2, weight_decay=WEIGHT_DECAY) for p in matrices])
momenta = [0.85 + 0.01 * step for step in range(STEPS)]
decays = [1 - 0.05 * step for step in range(STEPS)]
for step in range(STEPS):
    for k, p in enumerate(matrices):
        p.grad = draw(100 * (step + 1) + k, p.shape, 1 / 16)
    for group in optimizer.param_groups:
        group["momentum"] = momenta[step]
        group["weight_decay"] = WEIGHT_DECAY * decays[step]
    optimizer.step()

golden = {"learning_rate": RATE, "beta2": BETA2, "weight_decay": WEIGHT_DECAY,
          "momenta": [round(m, 2) for m in momenta], "decays": [round(d, 2) for d in decays],
          "matrices": [{"shape": list(p.shape),
                        "values": [float(f"{x:.9g}") for x in p.detach().flatten().tolist()]}
                       for p in matrices]}
with open(os.path.join(HERE, "muon.json"), "w") as file:
    json.dump(golden, file)
    file.write("\n")
