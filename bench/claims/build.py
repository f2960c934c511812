"""`data build` from compressed JSON lines: whether every core tokenizes."""

import data
from claims.claim import claim
from place import threads


def make_dataset(place):
    """A tokenizer, compressed JSON lines and a dataset of them; returns (dataset, JSON lines)."""
    dataset, lines = place.scratch / "dataset", place.scratch / "text.jsonl.zst"
    if not (dataset / "dataset.json").exists():
        text = place.scratch / "text.txt"
        text.write_text(data.code(10 * data.TEXT_BYTES))
        place.run(
            place.hearth,
            "tokenizer",
            "train",
            "--vocab",
            8192,
            "--quiet",
            "--out",
            place.scratch / "tokenizer",
            text,
        )
        data.write_json_lines(lines, text.read_text())
        build(place, lines, dataset)
    return dataset, lines


def build(place, lines, out):
    return place.run(
        place.hearth,
        "data",
        "build",
        "--quiet",
        "--overwrite",
        "--tokenizer",
        place.scratch / "tokenizer",
        "--out",
        out,
        lines,
    )[1]


def measure(place, lines, rounds):
    runs = [build(place, lines, place.scratch / "built") for _ in range(rounds)]
    busy = max(run.cpu_seconds / run.seconds / threads() for run in runs)
    best = min(run.seconds for run in runs)
    return [
        claim(
            "cores busy in data build from .jsonl.zst",
            f"{100 * busy:.0f}%",
            "≥ 90%",
            busy >= 0.9,
            f"{lines.stat().st_size / 1e6:.0f} MB compressed in {best:.1f} s on {threads()} cores",
        )
    ]
