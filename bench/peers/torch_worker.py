"""Trains in PyTorch, a step for each line on standard input. Runs in the peers' environment.

The argument is a JSON object: sizes, rows of a step and of a micro-batch, threads, device, data,
compile. With "tune" it finds the fastest micro-batch, prints it and ends. Otherwise it prints
{"parameters": N} once it is warm, and {"seconds": S, "loss": L, "device_bytes": M} for every step:
data, forward, backward, clipping, AdamW.
"""

import glob
import json
import sys
import time

import numpy
import torch
from torch_llama import Llama


class Data:
    """Random rows of the shards."""

    def __init__(self, directory, seq_len):
        self.shards = [
            numpy.memmap(path, dtype="<u2", mode="r", offset=1024)
            for path in sorted(glob.glob(f"{directory}/train*.bin"))
        ]
        self.seq_len, self.random = seq_len, numpy.random.default_rng(1)

    def rows(self, count):
        rows = numpy.empty((count, self.seq_len + 1), dtype=numpy.int64)
        for row in rows:
            shard = self.shards[self.random.integers(len(self.shards))]
            start = self.random.integers(len(shard) - self.seq_len)
            row[:] = shard[start : start + self.seq_len + 1]
        rows = torch.from_numpy(rows)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


class Trainer:
    def __init__(self, spec):
        torch.manual_seed(1)
        self.device = spec["device"]
        self.model = Llama(
            spec["layers"],
            spec["dim"],
            spec["heads"],
            spec["ffn"],
            spec["vocab"],
            spec["seq_len"],
            torch.bfloat16,
        ).to(self.device)
        self.forward = torch.compile(self.model, dynamic=False) if spec["compile"] else self.model
        matrices = [p for p in self.model.parameters() if p.dim() == 2]
        vectors = [p for p in self.model.parameters() if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
            lr=6e-6,
            betas=(0.9, 0.95),
            eps=1e-8,
            fused=True,
        )
        self.data = Data(spec["data"], spec["seq_len"])
        self.rows, self.micro_rows = spec["rows"], spec.get("micro_rows", spec["rows"])

    def micro_batch(self):
        tokens, targets = (self.placed(ids) for ids in self.data.rows(self.micro_rows))
        with torch.autocast(self.device, torch.bfloat16):
            loss = self.forward(tokens, targets)
        (loss * (self.micro_rows / self.rows)).backward()
        return loss.detach()

    def placed(self, ids):
        """On the device; the copy runs beside what was queued before."""
        return ids.pin_memory().to("cuda", non_blocking=True) if self.device == "cuda" else ids

    def step(self):
        losses = [self.micro_batch() for _ in range(self.rows // self.micro_rows)]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(torch.stack(losses).mean())


def wait_for(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(function, device):
    wait_for(device)
    started = time.perf_counter()
    result = function()
    wait_for(device)
    return time.perf_counter() - started, result


def fastest_micro_rows(spec, trainer):
    """From the smallest of at least 1024 tokens upwards, until a larger one is slower."""
    best, best_seconds = None, None
    sizes = [rows for rows in range(1, spec["rows"] + 1) if spec["rows"] % rows == 0]
    for rows in [r for r in sizes if r * spec["seq_len"] >= 1024] or sizes[-1:]:
        trainer.micro_rows = rows
        for _ in range(2):
            trainer.micro_batch()  # memory and caches settle
        seconds = min(seconds_of(trainer.micro_batch, spec["device"])[0] for _ in range(2)) / rows
        if best and seconds > 1.02 * best_seconds:
            break
        if not best or seconds < best_seconds:
            best, best_seconds = rows, seconds
    return best


def device_bytes(device):
    return torch.cuda.max_memory_allocated() if device == "cuda" else 0


def main():
    spec = json.loads(sys.argv[1])
    torch.set_num_threads(spec["threads"])
    trainer = Trainer(spec)
    if spec["tune"]:
        print(json.dumps({"micro_rows": fastest_micro_rows(spec, trainer)}), flush=True)
        return
    trainer.step()
    if spec["device"] == "cuda":
        torch.cuda.reset_peak_memory_stats()  # compiling takes memory too
        trainer.step()
    print(
        json.dumps({"parameters": sum(p.numel() for p in trainer.model.parameters())}), flush=True
    )
    for _ in sys.stdin:
        seconds, loss = seconds_of(trainer.step, spec["device"])
        answer = {"seconds": seconds, "loss": loss, "device_bytes": device_bytes(spec["device"])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
