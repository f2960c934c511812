"""llm.c's CPU trainer (train_gpt2.c, fp32), from a checkout: built and run in scratch."""

import array
import random
import re
import shutil
import struct
from pathlib import Path

from child import Absent, step_times

VOCAB, CONTEXT, LAYERS, HEADS, WIDTH, PADDED_VOCAB = 50257, 1024, 12, 12, 768, 50304


class LlmC:
    """Its batch is fixed in the source: a copy is built with the one wanted and no evaluation."""

    name, dtype = "llm.c", "fp32"

    def __init__(self, place, checkout, data):
        self.place, self.checkout, self.data, self.peak_bytes = place, checkout, data, 0

    def open(self, workload):
        if not self.checkout:
            raise Absent("no checkout given (LLMC=PATH)")
        source = Path(self.checkout) / "train_gpt2.c"
        if not source.exists():
            raise Absent(f"{source} is not there")
        self.peak_bytes = 0
        self.directory = self.place.directory("llm.c")
        changed = source.read_text()
        for name, value in (("B", workload.rows), ("T", workload.seq_len), ("val_num_batches", 0)):
            changed, count = re.subn(rf"int {name} = \d+;", f"int {name} = {value};", changed)
            if not count:
                raise Absent(f"{source} has no 'int {name} = …;'")
        (self.directory / "train_gpt2.c").write_text(changed)
        shutil.copytree(Path(self.checkout) / "llmc", self.directory / "llmc")
        self.place.run(
            "gcc",
            "-Ofast",
            "-march=native",
            "-fopenmp",
            "-DOMP",
            "-w",
            "train_gpt2.c",
            "-lm",
            "-o",
            "train_gpt2",
            cwd=self.directory,
        )
        shards = self.directory / "dev/data/tinyshakespeare"
        shards.mkdir(parents=True)
        for split in ("train", "val"):
            (shards / f"tiny_shakespeare_{split}.bin").symlink_to(
                (self.data / f"{split}_0.bin").resolve()
            )
        weights = self.place.scratch / "gpt2_124M.bin"
        if not weights.exists():
            write_random_weights(weights)
        (self.directory / "gpt2_124M.bin").symlink_to(weights.resolve())

    def measure(self, seconds):
        times, peak = step_times(
            ["stdbuf", "-oL", "./train_gpt2"],
            r"^step \d+: .*took ([\d.]+) ms",
            1,
            seconds,
            self.place.log,
            cwd=self.directory,
        )
        self.peak_bytes = max(self.peak_bytes, peak)
        return times

    def close(self):
        return self.peak_bytes


def write_random_weights(path):
    """GPT-2 124M in llm.c's format: norms 1 and 0, matrices normal."""
    noise = array.array("f", (random.Random(1).gauss(0, 0.02) for _ in range(1 << 16))).tobytes()
    one = struct.pack("<f", 1)
    vectors, matrices = LAYERS * WIDTH, LAYERS * WIDTH * WIDTH
    sizes = [
        ("noise", PADDED_VOCAB * WIDTH),
        ("noise", CONTEXT * WIDTH),
        ("one", vectors),
        ("zero", vectors),
        ("noise", 3 * matrices),
        ("zero", 3 * vectors),
        ("noise", matrices),
        ("zero", vectors),
        ("one", vectors),
        ("zero", vectors),
        ("noise", 4 * matrices),
        ("zero", 4 * vectors),
        ("noise", 4 * matrices),
        ("zero", vectors),
        ("one", WIDTH),
        ("zero", WIDTH),
    ]
    with open(path, "wb") as file:
        header = [20240326, 3, CONTEXT, VOCAB, LAYERS, HEADS, WIDTH, PADDED_VOCAB]
        file.write(struct.pack("<256i", *header, *[0] * (256 - len(header))))
        for kind, count in sizes:
            block = {"noise": noise, "one": one * (1 << 16), "zero": bytes(4 << 16)}[kind]
            for start in range(0, 4 * count, len(block)):
                file.write(block[: 4 * count - start])
