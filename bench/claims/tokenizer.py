"""Tokenizing and training tokenizers, beside tiktoken and rustbpe, on one core each."""

import array
import json
import os
import statistics
from pathlib import Path

import data
from child import Absent
from claims.claim import absent, claim

TRAIN_VOCAB = 16384
WORKER = Path(__file__).parent.parent / "peers" / "tokenizer_worker.py"


def measure(place, venv, rounds):
    directory = place.directory("text")
    return [*encoding(place, venv, directory, rounds), training(place, venv, directory, rounds)]


def one_core(command):
    """The command on the first processor only."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]


def texts(place):
    yield "code", data.code
    yield "English", lambda: data.english(place)
    yield "multilingual text", lambda: data.multilingual(place)


def encoding(place, venv, directory, rounds):
    try:
        ranks = place.data("tokenizer/tiktoken/cl100k_base.tiktoken")
        venv.need("tiktoken", "regex")
    except Absent as reason:
        return [absent("tokenizing against tiktoken", reason)]
    claims = []
    for name, text in texts(place):
        try:
            path = directory / f"{name.split()[0]}.txt"
            path.write_text(text())
            claims.append(encode_one(place, venv, ranks, name, path, rounds))
        except Absent as reason:
            claims.append(absent(f"tokenizing {name} against tiktoken", reason))
    return claims


def encode_one(place, venv, ranks, name, path, rounds):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(place.json(*one_core([place.program("tokenize"), ranks, 2, path])))
        theirs.append(place.json(*one_core([venv.python, WORKER, "encode", ranks, path])))
    same = array.array("I", Path(f"{path}.ids").read_bytes()) == array.array(
        "I", Path(f"{path}.tiktoken").read_bytes()
    )
    fast, slow = (statistics.median(run["seconds"] for run in runs) for runs in (ours, theirs))
    size = path.stat().st_size
    return claim(
        f"tokenizing {name} against tiktoken (cl100k)",
        f"{slow / fast:.2f}×",
        "≥ 3×, identical ids",
        same and slow >= 3 * fast,
        f"{size / fast / 1e6:.1f} and {size / slow / 1e6:.1f} MB/s on {size / 1e6:.1f} MB; ids "
        f"{'identical' if same else 'DIFFER'}",
    )


def training(place, venv, directory, rounds):
    name = "training a tokenizer against rustbpe"
    try:
        venv.need("rustbpe")
    except Absent as reason:
        return absent(name, reason)
    path = directory / "training.txt"
    path.write_text(data.code(4 * data.TEXT_BYTES))
    ours, theirs = [], []
    for _ in range(rounds):
        _, child = place.run(
            place.hearth,
            "tokenizer",
            "train",
            "--vocab",
            TRAIN_VOCAB,
            "--pattern",
            "nanochat",
            "--out",
            directory / "tokenizer",
            "--quiet",
            path,
        )
        ours.append(child.seconds)
        theirs.append(
            json.loads(place.run(venv.python, WORKER, "train", TRAIN_VOCAB - 9, path)[0])["seconds"]
        )
    fast, slow = statistics.median(ours), statistics.median(theirs)
    return claim(
        name,
        f"{slow / fast:.2f}×",
        "≥ 1×",
        fast <= slow,
        f"{fast:.2f} and {slow:.2f} s for {TRAIN_VOCAB} tokens, {path.stat().st_size / 1e6:.0f} MB",
    )
