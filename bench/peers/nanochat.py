"""nanochat's own scripts/base_train.py on the CPU, from a checkout."""

import os
from pathlib import Path

import data
from child import Absent, step_times
from peers.pytorch import FAST_MALLOC
from place import threads

# The fastest on two cores
MICRO_ROWS = {("nanochat", "d6"): 8, ("nanochat", "d12"): 2, ("nanochat-malloc", "d6"): 32}


class Nanochat:
    """`name`: nanochat, or nanochat-malloc: with PyTorch's malloc tuned. Its options have hearth's
    names; the workload's changes are theirs too."""

    dtype = "bf16"

    def __init__(self, name, place, venv, checkout):
        self.name, self.place, self.venv, self.checkout = name, place, venv, checkout
        self.peak_bytes = 0

    def open(self, workload):
        if not self.checkout:
            raise Absent("no checkout given (NANOCHAT=PATH)")
        if not (Path(self.checkout) / "scripts/base_train.py").exists():
            raise Absent(f"{self.checkout} has no scripts/base_train.py")
        self.venv.need(
            "numpy",
            "torch",
            "rustbpe",
            "tiktoken",
            "pyarrow",
            "wandb",
            "requests",
            "filelock",
            "psutil",
        )
        self.peak_bytes = 0
        home = self.place.scratch / "nanochat"
        self.environment = dict(
            os.environ,
            NANOCHAT_BASE_DIR=str(home.resolve()),
            NANOCHAT_DTYPE="bfloat16",
            OMP_NUM_THREADS=str(threads()),
            CUDA_VISIBLE_DEVICES="",
            PYTHONUNBUFFERED="1",
            TORCHINDUCTOR_CACHE_DIR=str(self.place.scratch / "inductor"),
        )
        if self.name == "nanochat-malloc":
            self.environment.update(FAST_MALLOC)
        if not (home / "done").exists():
            home = self.place.directory("nanochat")
            (home / "text.txt").write_text(data.code())
            self.place.run(
                self.venv.python,
                Path(__file__).with_name("nanochat_inputs.py").resolve(),
                home / "text.txt",
                env=self.environment,
                cwd=self.checkout,
            )
            (home / "done").touch()
        self.command = [
            self.venv.python,
            "-m",
            "scripts.base_train",
            "--device-type",
            "cpu",
            "--depth",
            workload.model[1:],
            "--max-seq-len",
            workload.seq_len,
            "--device-batch-size",
            MICRO_ROWS[self.name, workload.model],
            "--total-batch-size",
            workload.batch_tokens,
            *workload.changes,
            "--num-iterations",
            1000,
            "--eval-every",
            -1,
            "--core-metric-every",
            -1,
            "--sample-every",
            -1,
            "--run",
            "dummy",
        ]

    def measure(self, seconds):
        times, peak = step_times(
            self.command,
            r"step \d+/\d+ .* dt: ([\d.]+)ms",
            2,  # they compile and settle
            seconds,
            self.place.log,
            cwd=self.checkout,
            env=self.environment,
        )
        self.peak_bytes = max(self.peak_bytes, peak)
        return times

    def close(self):
        return self.peak_bytes
