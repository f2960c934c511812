"""The rate of PyTorch's scaled_dot_product_attention, forward and backward, at the shapes given.

The argument is a JSON object: device, rounds, tokens, width, shapes [[T, D, window], ...] as
bench/gpu.c has them. Prints a list of {"forward_flops_per_s", "backward_flops_per_s"}; pairs that
are not seen do not count. A window is a mask, with which there is no flash attention.
"""

import json
import statistics
import sys

import torch
import torch.nn.functional as F
from torch_worker import seconds_of

AT_ONCE = 4  # calls that are timed together: to wait for the GPU takes time too


def pairs(T, window):
    """Of a query and a key that it sees, in a row."""
    seen = T if window < 0 else min(T, window + 1)
    return seen * (seen + 1) / 2 + (T - seen) * seen


def window_mask(T, window, device):
    distance = torch.arange(T, device=device)[:, None] - torch.arange(T, device=device)[None, :]
    return (distance >= 0) & (distance <= window)


def measure(spec, T, D, window):
    rows, heads, device = spec["tokens"] // T, spec["width"] // D, spec["device"]
    q, k, v, gradient = (
        torch.randn(rows, heads, T, D, device=device, dtype=torch.bfloat16) for _ in range(4)
    )
    for tensor in (q, k, v):
        tensor.requires_grad_()
    causal = {"is_causal": True} if window < 0 else {"attn_mask": window_mask(T, window, device)}
    out = None

    def forward():
        nonlocal out
        for _ in range(AT_ONCE):
            out = F.scaled_dot_product_attention(q, k, v, **causal)

    def backward():
        for _ in range(AT_ONCE):
            torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    def median(function):
        times = [seconds_of(function, device)[0] for _ in range(spec["rounds"] + 2)]
        return statistics.median(times[2:]) / AT_ONCE

    product = 2 * rows * heads * D * pairs(T, window)
    return {
        "forward_flops_per_s": 2 * product / median(forward),
        "backward_flops_per_s": 5 * product / median(backward),
    }


def main():
    spec = json.loads(sys.argv[1])
    found = []
    for T, D, window in spec["shapes"]:
        try:
            found.append(measure(spec, T, D, window))
        except torch.OutOfMemoryError:
            found.append(None)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
