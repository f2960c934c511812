"""nanochat's recipe beside llama's: the same text, as many tokens, as many parameters."""

import data
from claims.claim import claim

STEPS, VOCAB = 150, 4096
PACKING = ["--packing", "bestfit"]
SAME = ["--seq-len", 512, "--batch-tokens", 16384, "--steps", STEPS, *PACKING]
MODELS = {
    "d6": ["--model", "d6", "--head-dim", 64],
    "llama": [
        "--model",
        "llama-15m",
        "--dim",
        448,
        "--heads",
        7,
        "--kv-heads",
        7,
        "--ffn",
        1248,
        "--no-tie-embeddings",
        "--lr",
        2e-3,  # higher than the default, as so short a run likes it; not swept
    ],
}


def make_dataset(place):
    """English, in documents of 3000 characters."""
    directory = place.directory("recipe")
    lines = directory / "text.jsonl.zst"
    data.write_json_lines(lines, data.english(place), 3000)
    tokenizer, dataset = directory / "tokenizer", directory / "data"
    train = ["tokenizer", "train", "--quiet", "--vocab", VOCAB, "--pattern", "nanochat"]
    place.run(place.hearth, *train, "--out", tokenizer, lines)
    build = ["data", "build", "--quiet", "--val-fraction", 0.03, "--tokenizer", tokenizer]
    place.run(place.hearth, *build, "--out", dataset, lines)
    return dataset


def bits_per_byte(place, dataset, name):
    """Of held-out text, after training; and the number of parameters."""
    options, run = [*MODELS[name], *SAME], dataset.parent / name
    planned = place.json(place.hearth, "plan", "--json", *options, "--vocab", VOCAB)
    quiet = ["--quiet", "--eval-every", 0, "--data", dataset]
    place.run(place.hearth, "train", *options, *quiet, "--run-dir", run)
    evaluate = ["eval", "--json", "--quiet", *PACKING, "--checkpoint", run, "--data", dataset]
    evaluated = place.json(place.hearth, *evaluate)
    return evaluated["bpb"], planned["parameters"]


def measure(place):
    dataset = make_dataset(place)
    (ours, count), (llama, llama_count) = (
        bits_per_byte(place, dataset, name) for name in ("d6", "llama")
    )
    return [
        claim(
            f"d6: bits per byte after {STEPS * 16384 / 1e6:.1f} M tokens",
            f"{ours:.4f}",
            f"< {llama:.4f}, llama's",
            ours < llama,
            f"{count / 1e6:.2f} M parameters, llama {llama_count / 1e6:.2f} M",
        )
    ]
