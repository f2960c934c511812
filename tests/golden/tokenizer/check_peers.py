#!/usr/bin/env python3
"""Compares the built program with tiktoken, Hugging Face tokenizers, transformers and rustbpe.

    check_peers.py HEARTH SHARED_DATA

Encodes every UTF-8 text of the shared data, zip members included, and random strings; loads saved
tokenizers with AutoTokenizer; trains on the same text. Prints a line for each check; exits 1 if one
fails. A development check: it needs the peers, and the tests do not run it.
"""
import collections
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from pathlib import Path

import regex
import rustbpe
import tiktoken
import tokenizers
from tokenizers import models, pre_tokenizers, trainers
from tiktoken.load import load_tiktoken_bpe
from tiktoken_ext import openai_public
from transformers import AutoTokenizer

hearth, data = sys.argv[1], Path(sys.argv[2])
work = Path(tempfile.mkdtemp())
failures = 0

NANOCHAT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)


def report(name, good, detail=""):
    global failures
    failures += not good
    print("ok  " if good else "FAIL", name, detail)


def texts():
    """Every text in the shared data, as (name, str)."""
    for path in sorted((data / "text").glob("**/*")):
        if path.suffix == ".zip":
            archive = zipfile.ZipFile(path)
            members = [(f"{path.name}:{n}", archive.read(n)) for n in archive.namelist()]
        else:
            members = [(path.name, path.read_bytes())] if path.is_file() else []
        for name, content in members:
            try:
                yield name, content.decode("utf-8")
            except UnicodeDecodeError:
                pass


def random_texts(count):
    """Strings of letters, digits, spaces and marks of all scripts assigned before Unicode 14."""
    rng = random.Random(1)
    interesting = list(" \t\r\n'’sdtSLEVR.,!0123456789\u00a0\u180e\u2028\u0085\u017f\u212a")
    points = [chr(c) for c in range(0x20000)
              if unicodedata.category(chr(c)) not in ("Cs", "Cn", "Co")]
    for i in range(count):
        yield f"random {i}", "".join(
            rng.choice(interesting if rng.random() < 0.7 else points)
            for _ in range(rng.randrange(1, 2000)))


def encode(tokenizer, files, specials):
    command = [hearth, "tokenizer", "encode", "--json", "--tokenizer", str(tokenizer), *files]
    if specials:
        command.insert(4, "--find-specials")
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line)["ids"] for line in lines]


def check_encoding(samples):
    files = []
    for i, (_, text) in enumerate(samples):
        files.append(str(work / f"sample{i}"))
        Path(files[-1]).write_bytes(text.encode("utf-8"))
    folder = data / "tokenizer"

    def tik(name, pattern):
        ranks = load_tiktoken_bpe(str(folder / f"tiktoken/{name}.tiktoken"))
        return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                                 special_tokens={}).encode_ordinary

    def hug(path):
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids

    r50k, cl100k = tik("r50k_base", openai_public.r50k_pat_str), tik("cl100k_base", CL100K)
    hf = folder / "hf_tokenizer_json"
    cases = [
        (folder / "gpt2/encoder.json", r50k, False),
        (folder / "tiktoken/r50k_base.tiktoken", r50k, False),
        (folder / "tiktoken/cl100k_base.tiktoken", cl100k, False),
        (hf / "gpt2.tokenizer.json", hug(hf / "gpt2.tokenizer.json"), True),
        (hf / "dolma2.tokenizer.json", hug(hf / "dolma2.tokenizer.json"), True),
    ]
    for path, peer, specials in cases:
        ours = encode(path, files, specials)
        wrong = [samples[i][0] for i in range(len(samples)) if ours[i] != peer(samples[i][1])]
        total = sum(map(len, ours))
        report(f"encode {path.name}", not wrong, f"{len(samples)} texts, {total} ids {wrong[:5]}")
    return files


def train(pattern, vocab, files, *options):
    out = work / f"trained{random.random()}"
    subprocess.run([hearth, "tokenizer", "train", "--quiet", "--vocab", str(vocab), "--pattern",
                    pattern, "--out", str(out), *options, *files], check=True, capture_output=True)
    return out


def check_auto_tokenizer(samples, files):
    for pattern in ("gpt2", "gpt4", "nanochat", "o200k"):
        out = train(pattern, 3000, [str(data / "text/tinyshakespeare.txt")])
        auto = AutoTokenizer.from_pretrained(str(out))
        ours = encode(out, files, True)
        wrong = [n for (n, text), ids in zip(samples, ours)
                 if auto.encode(text, add_special_tokens=False) != ids]
        report(f"AutoTokenizer {pattern}", not wrong,
               f"{len(samples)} texts, bos {auto.bos_token_id}, len {len(auto)} {wrong[:5]}")


def byte_alphabet():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [b for b in range(256) if b not in kept]
    table = {b: chr(b) for b in kept}
    table.update({b: chr(256 + i) for i, b in enumerate(moved)})
    return table


def merges_of(out):
    """The trained merges as pairs of bytes."""
    back = {c: b for b, c in byte_alphabet().items()}
    merges = json.loads((out / "tokenizer.json").read_text())["model"]["merges"]
    return [tuple(bytes(back[c] for c in part) for part in m.split(" ")) for m in merges]


def check_rustbpe(name, text, file, pattern_name, pattern, vocab):
    peer = rustbpe.Tokenizer()
    peer.train_from_iterator(iter([text]), vocab, pattern=pattern)
    theirs = [token for token, _ in sorted(peer.get_mergeable_ranks(), key=lambda r: r[1])][256:]
    ours = [a + b for a, b in merges_of(
        train(pattern_name, vocab + 1, [file], "--specials", "<|x|>"))]
    theirs = [bytes(t) for t in theirs]
    report(f"rustbpe {pattern_name} {name}", ours == theirs, f"{len(ours)} merges")


def huggingface_merges(text, pattern, vocab):
    peer = tokenizers.Tokenizer(models.BPE())
    peer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=vocab, show_progress=False, special_tokens=[],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    peer.train_from_iterator([text], trainer)
    back = {c: b for b, c in byte_alphabet().items()}
    return [tuple(bytes(back[c] for c in part) for part in merge)
            for merge in json.loads(peer.to_str())["model"]["merges"]]


def check_huggingface_training(name, text, file, pattern_name, pattern, vocab):
    """The peer numbers the bytes in the order of its alphabet, so ties fall differently: the share of
    merges in common is shown. check_ties() proves that nothing but ties differs."""
    theirs = huggingface_merges(text, pattern, vocab)
    ours = merges_of(train(pattern_name, vocab + 1, [file], "--specials", "<|x|>"))
    same = len(set(ours) & set(theirs)) / len(ours)
    report(f"Hugging Face trainer {pattern_name} {name}", same > 0.97,
           f"{len(ours)} merges, {100 * same:.2f}% in common")


def reference_merges(text, pattern, count, byte_order, greatest=False):
    """Byte-pair learning as it is defined, counting anew for every merge. A tie goes to the pair with
    the smallest ids, bytes being numbered in `byte_order`; or to the greatest pair of byte strings."""
    ids = {bytes([b]): i for i, b in enumerate(byte_order)}
    words = collections.Counter(regex.findall(pattern, text))
    words = [([bytes([b]) for b in word.encode()], n) for word, n in words.items()]
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for word, n in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        most = max(pairs.values())
        tied = [pair for pair, n in pairs.items() if n == most]
        best = max(tied) if greatest else min(tied, key=lambda p: (ids[p[0]], ids[p[1]]))
        merges.append(best)
        ids.setdefault(best[0] + best[1], len(ids))
        for word, _ in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == best:
                    word[i:i + 2] = [best[0] + best[1]]
                i += 1
    return merges


def check_ties():
    """With each one's tie rule the definition gives each one's merges."""
    folder = data / "tokenizer/bpe_train_oracle"
    file = folder / "corpus.en"
    text = file.read_bytes().decode("utf-8")
    table = byte_alphabet()
    alphabet_order = sorted(range(256), key=lambda b: table[b])
    ours = merges_of(train("gpt2", 757, [str(file)]))
    report("ties: ours, smallest ids", ours == reference_merges(text, GPT2, 500, range(256)))
    report("ties: Hugging Face, smallest ids in its alphabet",
           huggingface_merges(text, GPT2, 756) == reference_merges(text, GPT2, 500, alphabet_order))
    back = {c: b for b, c in table.items()}
    oracle = [tuple(bytes(back[c] for c in part) for part in line.split(" "))
              for line in (folder / "train-bpe-reference-merges.txt").read_text().splitlines()]
    report("ties: the oracle, greatest byte strings",
           oracle == reference_merges(text, GPT2, len(oracle), range(256), True))


def check_training():
    for name in ("tinyshakespeare.txt", "wikitext2.valid.txt", "tinystories_944KB.txt"):
        file = data / "text" / name
        text = file.read_bytes().decode("utf-8")
        for pattern_name, pattern in (("gpt2", GPT2), ("gpt4", GPT4), ("nanochat", NANOCHAT)):
            check_rustbpe(name, text, str(file), pattern_name, pattern, 5000)
            check_huggingface_training(name, text, str(file), pattern_name, pattern, 5000)


samples = list(texts()) + list(random_texts(200))
files = check_encoding(samples)
check_auto_tokenizer(samples, files)
check_training()
check_ties()
sys.exit(failures > 0)
