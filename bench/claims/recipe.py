"""nanochat's recipe beside llama's: the same text, as many tokens, as many parameters."""

import data
from claims.claim import claim

STEPS, VOCAB = 150, 4096
LLAMA_RATES = [1e-3, 2e-3, 4e-3]  # of which the best counts; so short a run likes high ones
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


def bits_per_byte(place, dataset, name, *options):
    """Of held-out text, after training."""
    run = dataset.parent / "-".join(map(str, [name, *options[1:]]))
    train = ["train", *MODELS[name], *SAME, *options, "--quiet", "--eval-every", 0]
    place.run(place.hearth, *train, "--data", dataset, "--run-dir", run)
    evaluate = ["eval", "--json", "--quiet", *PACKING, "--checkpoint", run, "--data", dataset]
    return place.json(place.hearth, *evaluate)["bpb"]


def parameters(place, name):
    plan = ["plan", "--json", *MODELS[name], *SAME, "--vocab", VOCAB]
    return place.json(place.hearth, *plan)["parameters"] / 1e6


def measure(place):
    dataset = make_dataset(place)
    ours = bits_per_byte(place, dataset, "d6")
    llama = {rate: bits_per_byte(place, dataset, "llama", "--lr", rate) for rate in LLAMA_RATES}
    best = min(llama, key=llama.get)
    d6_size, llama_size = (parameters(place, name) for name in ("d6", "llama"))
    return [
        claim(
            f"d6: bits per byte after {STEPS * 16384 / 1e6:.1f} M tokens",
            f"{ours:.4f}",
            f"< {llama[best]:.4f}, llama's at --lr {best:g}, the best of {len(llama)}",
            ours < llama[best],
            f"{d6_size:.2f} M parameters, llama {llama_size:.2f} M",
        )
    ]
