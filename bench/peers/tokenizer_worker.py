"""tiktoken and rustbpe, timed. Runs in the peers' environment.

encode RANKS FILE    writes FILE.tiktoken (uint32 ids); prints {"seconds": S}
train VOCAB FILE     prints {"seconds": S}
"""

import array
import json
import sys
import time

NANOCHAT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def encode(ranks, path):
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    encoding = tiktoken.Encoding(
        "cl100k_base", pat_str=CL100K, mergeable_ranks=load_tiktoken_bpe(ranks), special_tokens={}
    )
    text = open(path, newline="").read()
    best = min(
        (timed(lambda: encoding.encode_ordinary(text)) for _ in range(2)), key=lambda run: run[0]
    )
    array.array("I", best[1]).tofile(open(path + ".tiktoken", "wb"))
    return best[0]


def train(vocab, path):
    import rustbpe

    text = open(path, newline="").read()
    documents = [text[start : start + 100_000] for start in range(0, len(text), 100_000)]
    tokenizer = rustbpe.Tokenizer()
    return timed(
        lambda: tokenizer.train_from_iterator(iter(documents), int(vocab), pattern=NANOCHAT)
    )[0]


def timed(function):
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


seconds = {"encode": encode, "train": train}[sys.argv[1]](*sys.argv[2:])
print(json.dumps({"seconds": seconds}))
