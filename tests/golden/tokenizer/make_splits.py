#!/usr/bin/env python3
"""Writes splits.txt: what the peers make of the random text that tests/unit/text/test_words.c makes too.

    make_splits.py SHARED_DATA > splits.txt

A line is: what ("pieces" of a named pattern, by tokenizers; "ids" of a rank file, by tiktoken; "classes" of
all code points, by tiktoken), which, number, SHA-256 of the ends of the pieces or of the ids as little-endian
uint32, or of the classes as bytes. Needs tiktoken and tokenizers.
"""
import hashlib
import struct
import sys

import tiktoken
import tokenizers
from tiktoken.load import load_tiktoken_bpe
from tiktoken_ext import openai_public
from tokenizers import pre_tokenizers

# As in src/text/pattern.c, in Oniguruma's spelling: without possessive repeats, \z for the end of the text.
GPT4_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
SYMBOLS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "gpt4": GPT4_WORDS + r"|\p{N}{1,3}" + SYMBOLS + r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k": GPT4_WORDS + r"|\p{N}{1,3}" + SYMBOLS + r"|\s+\z|\s*[\r\n]|\s+(?!\S)|\s",
    "nanochat": GPT4_WORDS + r"|\p{N}{1,2}" + SYMBOLS + r"|\s*[\r\n]|\s+(?!\S)|\s+",
    "o200k":
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
CHARACTERS = 200_000
USUAL = " \t\r\n'sdtlmrveSLE.,!/0123456789aB"
PLANES = [0x250, 0x3000, 0x10000, 0x20000, 0x110000]


def random_text():
    state, text = 1, []
    for _ in range(CHARACTERS):
        state = (state * 1664525 + 1013904223) % 2**32
        kind, value = state >> 29, state >> 4
        code = ord(USUAL[value % len(USUAL)]) if kind < 3 else value % PLANES[kind - 3]
        text.append(chr(0xE9 if 0xD800 <= code < 0xE000 else code))
    return "".join(text) + "e\n  "


def digest(numbers):
    return hashlib.sha256(struct.pack(f"<{len(numbers)}I", *numbers)).hexdigest()


def pieces(text, pattern):
    split = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    ends, end = [], 0
    for piece, _ in split.pre_tokenize_str(text):
        end += len(piece.encode())
        ends.append(end)
    return ends


def ids(text, data, name, pattern):
    ranks = load_tiktoken_bpe(f"{data}/tokenizer/tiktoken/{name}.tiktoken")
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                             special_tokens={}).encode_ordinary(text)


def classes():
    every = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    found = bytearray(0x110000)
    ranks = {bytes([b]): b for b in range(256)}
    for number, pattern in enumerate([r"\p{Lu}|\p{Lt}", r"\p{Ll}", r"\p{Lm}|\p{Lo}", r"\p{M}",
                                      r"\p{N}", r"\s"], 1):
        peer = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for character in bytes(peer.encode_ordinary(every)).decode():
            found[ord(character)] = number
    return found


sample = random_text()
for key, value in PATTERNS.items():
    found = pieces(sample, value)
    print("pieces", key, len(found), digest(found))
for key, value in (("r50k_base", openai_public.r50k_pat_str), ("cl100k_base", CL100K)):
    found = ids(sample, sys.argv[1], key, value)
    print("ids", key, len(found), digest(found))
print("classes", "unicode-16", 0x110000, hashlib.sha256(classes()).hexdigest())
