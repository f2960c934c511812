"""What is trained: a model, a sequence length, a batch. The same for every implementation."""

from dataclasses import dataclass

# layers, width, heads, ffn: hearth's presets of these names
SIZES = {
    "llama-15m": (6, 288, 6, 768),
    "llama-42m": (8, 512, 8, 1376),
    "llama-110m": (12, 768, 12, 2048),
    "llama-300m": (24, 960, 15, 2560),
    "llama-600m": (28, 1280, 20, 3456),
    "llama-977m": (24, 1792, 16, 4736),
}
DEFAULT = "llama-15m:256:32 llama-110m:1024:8 llama-110m:4096:1 llama-300m:1024:1"
QUICK = "llama-15m:256:16"
GPU = "llama-110m:1024:128 llama-300m:1024:64 llama-977m:2048:32"


@dataclass(frozen=True)
class Workload:
    model: str
    seq_len: int
    rows: int  # sequences of an optimizer step
    vocab: int = 32000
    dtype: str = "bf16"
    name: str = ""  # as the results show it, where it is not the preset's own
    changes: tuple = ()  # options of hearth that change the preset
    sizes: tuple = ()  # as in SIZES, where changes make others
    device: str = "cpu"

    @property
    def batch_tokens(self):
        return self.rows * self.seq_len

    @property
    def title(self):
        return f"{self.name or self.model}, T = {self.seq_len}, {self.rows} rows"

    def options(self):
        """The options of `hearth train` and `hearth plan` that say this."""
        return [
            "--model",
            self.model,
            "--seq-len",
            self.seq_len,
            "--vocab",
            self.vocab,
            "--batch-tokens",
            self.batch_tokens,
            "--precision",
            self.dtype,
            "--device",
            self.device,
            "--no-document-mask",
            *self.changes,
        ]


# For trying the GPU's benchmark where a step takes seconds: on the test driver
TINY = Workload(
    "llama-15m",
    32,
    4,
    vocab=512,
    name="tiny",
    changes=("--layers", 1, "--dim", 64, "--heads", 2, "--kv-heads", 2, "--ffn", 96),
    sizes=(1, 64, 2, 96),
)


def parse(text):
    """ "llama-110m:1024:8" → llama-110m at T = 1024, 8 rows a step."""
    workloads = []
    for word in text.split():
        try:
            model, seq_len, rows = word.split(":")
            workload = Workload(
                model,
                int(seq_len),
                int(rows),
                32768 if model in ("llama-300m", "llama-600m") else 32000,
            )
        except ValueError:
            raise SystemExit(
                f"MODELS: '{word}' is not MODEL:SEQ_LEN:ROWS, such as llama-110m:1024:8"
            )
        if model not in SIZES:
            raise SystemExit(f"MODELS: no model {model}; there are {' '.join(SIZES)}")
        workloads.append(workload)
    return workloads
