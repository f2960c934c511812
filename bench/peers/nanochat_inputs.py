"""Makes what nanochat's base_train reads: a tokenizer and two parquet files of documents. Runs in
the peers' environment, in nanochat's checkout. The argument is a text file."""

import os
import sys

import pyarrow
import pyarrow.parquet
import torch

sys.path.insert(0, os.getcwd())
from nanochat.common import get_base_dir
from nanochat.dataset import DATA_DIR
from nanochat.tokenizer import RustBPETokenizer

text = open(sys.argv[1]).read()
documents = [text[start : start + 4000] for start in range(0, len(text), 4000)]
tokenizer = RustBPETokenizer.train_from_iterator(iter(documents), 32768)
directory = os.path.join(get_base_dir(), "tokenizer")
tokenizer.save(directory)
lengths = [
    len(tokenizer.enc.decode_single_token_bytes(i)) for i in range(tokenizer.get_vocab_size())
]
torch.save(torch.tensor(lengths, dtype=torch.int32), os.path.join(directory, "token_bytes.pt"))
os.makedirs(DATA_DIR, exist_ok=True)
for number in range(2):
    table = pyarrow.table({"text": documents})
    pyarrow.parquet.write_table(
        table, os.path.join(DATA_DIR, f"shard_{number:05d}.parquet"), row_group_size=1024
    )
