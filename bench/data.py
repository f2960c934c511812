"""What is trained on and tokenized: random token shards, and text."""

import ctypes
import ctypes.util
import json
import random
import struct
import sysconfig
import zipfile
from pathlib import Path

from child import Absent

SHARD_TOKENS = 50_000_000


def token_shards(place, vocab=32000):
    """A directory of llm.c shards of random tokens, which all implementations read. `vocab`: a
    multiple of 256."""
    directory = place.scratch / "shards"
    if not (directory / "done").exists():
        directory = place.directory("shards")
        for number, name in enumerate(("train_0", "train_1", "val_0")):
            count = SHARD_TOKENS if number < 2 else 1_000_000
            write_shard(directory / f"{name}.bin", count, number, vocab)
        (directory / "done").touch()
    return directory


def write_shard(path, count, seed, vocab):
    tokens = bytearray(random.Random(seed).randbytes(2 * count))
    tokens[1::2] = tokens[1::2].translate(bytes(byte % (vocab // 256) for byte in range(256)))
    tokens[0:2] = struct.pack("<H", vocab - 1)
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        file.write(tokens)


# ---- Text ----

TEXT_BYTES = 8_000_000


def code(limit=TEXT_BYTES):
    """Python's own standard library: code that is on every machine that runs this."""
    return joined(sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")), limit)


def english(place, limit=TEXT_BYTES):
    folder = place.data("text")
    texts = [path.read_text() for path in sorted(folder.glob("*.txt"))]
    return "\n".join(texts + zip_texts(folder / "state_union.zip"))[:limit]


def multilingual(place, limit=TEXT_BYTES):
    return "\n".join(zip_texts(place.data("text/udhr2.zip")))[:limit]


def zip_texts(path):
    with zipfile.ZipFile(path) as archive:
        members = [
            archive.read(name) for name in sorted(archive.namelist()) if name.endswith(".txt")
        ]
    return [member.decode(errors="ignore") for member in members]


def joined(paths, limit):
    texts, size = [], 0
    for path in paths:
        if size >= limit:
            break
        texts.append(path.read_text(errors="ignore"))
        size += len(texts[-1])
    return "\n".join(texts)


def write_json_lines(path, text, characters=4000):
    """Documents of so many characters, a JSON object a line, compressed by zstd."""
    lines = (
        json.dumps({"text": text[i : i + characters]}) for i in range(0, len(text), characters)
    )
    path.write_bytes(compress("\n".join(lines).encode()))


def compress(data):
    name = ctypes.util.find_library("zstd")
    if not name:
        raise Absent("libzstd is not installed")
    library = ctypes.CDLL(name)
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int,
    ]
    out = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
    size = library.ZSTD_compress(out, len(out), data, len(data), 3)
    return out.raw[:size]
