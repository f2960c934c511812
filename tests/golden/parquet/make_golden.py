"""Writes small Parquet files into this folder, and to stdout what pyarrow reads from them and from those in DIR.

Usage: python make_golden.py DIR >columns.txt    (pyarrow 26)

A line of columns.txt: file, column (its path, dots between the names), then one of
    strings N SHA256  N strings that are neither null nor empty; the digest is of each one's size in eight
                      bytes, lowest first, and its bytes, one after the other
    list              the column repeats within a row (of those, a file's first)
    type NAME         it holds no strings (of each type, a file's first)
    nulls             its type is that of nothing but nulls
    fails             pyarrow cannot read it either
"""

import hashlib
import pathlib
import sys

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def is_text(kind):
    return (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def read(path, column):
    """A column's values as one array; of nested ones, only the innermost."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read(columns=[column.path]).combine_chunks()
    if column.path in table.column_names:
        return table.column(column.path)
    first, *rest = column.path.split(".")
    return pa.compute.struct_field(table.column(first), rest)


def write_files():
    """Small files of every codec, encoding and page version; seeds of the fuzz target as well."""
    for old in HERE.glob("*.parquet"):
        old.unlink()
    texts = ["", None, "one", "two two", "two two three", "caf\u00e9", None, "one", "\U0001f525" * 9]
    nullable = pa.table({"id": range(36), "text": texts * 4})
    required = pa.schema([pa.field("text", pa.string(), nullable=False)])
    full = pa.table([[text or "none" for text in texts * 4]], schema=required)
    nested = pa.table({"page": [{"text": text, "n": 1} if text != "one" else None for text in texts]})
    fixed = pa.table({"text": pa.array([b"abcd", None, b"efgh", b"abcd"], pa.binary(4))})
    encodings = {"plain": {"use_dictionary": False}, "dictionary": {}}
    for name in "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY":
        encodings[name.lower()] = {"use_dictionary": False, "column_encoding": {"text": name}}
    codecs = iter(["none", "snappy", "gzip", "lz4", "zstd", "none", "snappy", "zstd"])
    for name, options in encodings.items():
        for version in "1.0", "2.0":
            codec, table = next(codecs), nullable if version == "1.0" else full
            write(f"{name}-{version[0]}-{codec}", table, codec, data_page_version=version, **options)
    write("nested", nested, "zstd")
    write("fixed", fixed, "none", use_dictionary=False)
    write("checksum", nullable, "snappy", write_page_checksum=True, data_page_version="2.0")
    write("brotli", full, "brotli")
    write("row-groups", nullable, "zstd", row_group_size=7, data_page_size=1, write_batch_size=3)
    write("no-rows", full.slice(0, 0), "zstd")
    damaged = bytearray((HERE / "checksum.parquet").read_bytes())
    at = damaged.index(b"three")
    damaged[at] ^= 1
    (HERE / "wrong-checksum.parquet").write_bytes(damaged)


def write(name, table, codec, **options):
    pq.write_table(table, HERE / f"{name}.parquet", compression=codec, store_schema=False, **options)


def describe(path, column):
    """The third field of a line."""
    if column.max_repetition_level:
        return "list"
    if str(column.logical_type) == "Null":
        return "nulls"
    if not column.physical_type.endswith("BYTE_ARRAY"):
        return f"type {column.physical_type}"
    try:
        array = read(path, column)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
    except (OSError, pa.ArrowException) as error:
        print(path.name, column.path, error, file=sys.stderr)
        return "fails"
    if not is_text(array.type):
        return f"type {column.logical_type.type}"
    digest, count = hashlib.sha256(), 0
    for value in array.to_pylist():
        text = value.encode() if isinstance(value, str) else value
        if text:
            digest.update(len(text).to_bytes(8, "little") + text)
            count += 1
    return f"strings {count} {digest.hexdigest()}"


def main():
    shared = pathlib.Path(sys.argv[1])
    write_files()
    for root in (shared, HERE):
        for path in sorted(root.rglob("*.parquet")):
            seen = set()
            columns = pq.ParquetFile(path).schema
            for column in map(columns.column, range(len(columns))):
                kind = describe(path, column)
                if kind.startswith("strings") or kind not in seen:
                    print(path.relative_to(root), column.path, kind, sep="\t")
                seen.add(kind)


main()
