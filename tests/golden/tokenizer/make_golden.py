#!/usr/bin/env python3
"""Writes ids.txt: for each tokenizer and text of the shared data, what the peers' own libraries give.

A line is: tokenizer, text, "ordinary" or "specials" (whether special tokens in the text are found),
number of ids, SHA-256 of the ids as little-endian uint32. Needs tiktoken and tokenizers.

    make_golden.py SHARED_DATA > ids.txt
"""
import hashlib
import struct
import sys
from pathlib import Path

import tiktoken
import tokenizers
from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe
from tiktoken_ext import openai_public

data = Path(sys.argv[1])
GPT2 = openai_public.r50k_pat_str
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)


def from_tiktoken(name, pattern, ranks):
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def from_huggingface(path):
    tokenizer = tokenizers.Tokenizer.from_file(str(data / path))
    tokenizer.no_truncation()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def encoders():
    folder = data / "tokenizer"
    gpt2 = data_gym_to_mergeable_bpe_ranks(
        str(folder / "gpt2/vocab.bpe"), str(folder / "gpt2/encoder.json"))
    r50k = load_tiktoken_bpe(str(folder / "tiktoken/r50k_base.tiktoken"))
    cl100k = load_tiktoken_bpe(str(folder / "tiktoken/cl100k_base.tiktoken"))
    yield "gpt2/encoder.json", "ordinary", from_tiktoken("gpt2", GPT2, gpt2).encode_ordinary
    yield ("tiktoken/r50k_base.tiktoken", "ordinary",
           from_tiktoken("r50k", GPT2, r50k).encode_ordinary)
    yield ("tiktoken/cl100k_base.tiktoken", "ordinary",
           from_tiktoken("cl100k", CL100K, cl100k).encode_ordinary)
    for name in ("gpt2", "dolma2"):
        path = f"hf_tokenizer_json/{name}.tokenizer.json"
        yield path, "specials", from_huggingface("tokenizer/" + path)


def main():
    for tokenizer, mode, encode in encoders():
        for path in sorted(p for p in data.glob("text/**/*") if p.is_file()):
            try:
                text = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue  # the peers take only valid UTF-8
            ids = encode(text)
            digest = hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()
            print(tokenizer, path.relative_to(data), mode, len(ids), digest)


main()
