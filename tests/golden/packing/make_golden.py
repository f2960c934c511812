"""Rows that nanochat's own dataloader packs, for documents of random lengths.

    python make_golden.py NANOCHAT        # a checkout; needs torch and pyarrow

writes bestfit_short.json and bestfit_long.json: `sequence_length` T, `lengths` of the documents with their
BOS, and `rows`, each a list of [document, count]: the first `count` tokens of the document stand there,
T + 1 in all. The rows are those made before a document beyond the last is asked for: nanochat goes on
with the next epoch there."""

import json
import random
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from nanochat import dataloader


class Numbered:
    """A tokenizer whose documents are numbers; token i of document d is (d, i) in one integer."""

    def __init__(self, lengths):
        self.lengths = lengths

    def get_bos_token_id(self):
        return 0

    def encode(self, documents, prepend, num_threads):
        return [[d << 32 | i for i in range(self.lengths[d])] for d in documents]


def rows(lengths, T):
    def batches(split, resume, size):
        for first in range(0, len(lengths), size):
            yield range(first, min(first + size, len(lengths))), (0, 0, 1)

    dataloader._document_batches = batches
    loader = dataloader.tokenizing_distributed_data_loader_bos_bestfit(
        Numbered(lengths), 1, T, "train", device="cpu"
    )
    try:
        for inputs, targets in loader:
            yield inputs[0].tolist() + targets[0, -1:].tolist()
    except RuntimeError as ended:
        assert isinstance(ended.__cause__, StopIteration)


def segments(row):
    found = [(d, [t & 0xFFFFFFFF for t in run]) for d, run in groupby(row, lambda t: t >> 32)]
    assert all(places == list(range(len(places))) for _, places in found)
    return [[d, len(places)] for d, places in found]


def write(name, lengths, T):
    packed = [segments(row) for row in rows(lengths, T)]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in packed)
    text = f'{{"sequence_length": {T}, "lengths": {lengths}, "rows": [\n{lines}\n]}}\n'
    Path(__file__).with_name(name).write_text(text)


draw = random.Random(1)
write("bestfit_short.json", [draw.randint(1, draw.randint(1, 90)) for _ in range(2500)], 64)
write("bestfit_long.json", [int(2 ** draw.uniform(0, 11)) for _ in range(2000)], 256)
