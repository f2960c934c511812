"""Cost grows as it should: windows, memory, and sequences of 32k."""

from claims.claim import claim
from peers import hearth
from workloads import Workload

WINDOW, TOKENS = 256, 32768


def measure(place, shards, rounds):
    return [window_cost(place, rounds), *long_sequences(place, shards)]


def attention_seconds(place, seq_len):
    """Of the attention of all layers, forward and backward, for TOKENS tokens."""
    found = place.json(
        place.program("profile"),
        "--json",
        "--rounds",
        2,
        "--model",
        "llama-15m",
        "--seq-len",
        seq_len,
        "--window-pattern",
        "S",
        "--window",
        WINDOW,
        "--batch-tokens",
        TOKENS,
        "--no-document-mask",
        "--micro-batch",
        TOKENS // seq_len,
    )
    return sum(
        row["seconds"] for row in found["operations"] if row["operation"].startswith("attention")
    )


def pairs(seq_len):
    """Keys that a query sees, on average over a sequence: fewer at its beginning."""
    inside = WINDOW + 1
    return (inside * (inside + 1) / 2 + (seq_len - inside) * inside) / seq_len


def window_cost(place, rounds):
    short, long = [], []
    for _ in range(rounds):
        short.append(attention_seconds(place, 1024))
        long.append(attention_seconds(place, 32768))
    ratio = min(long) / min(short)
    expected = pairs(32768) / pairs(1024)
    return claim(
        f"attention with a window of {WINDOW}, per token, T = 32k against 1k",
        f"{ratio:.2f}×",
        f"about {expected:.2f}×",
        ratio <= 1.1 * expected,
        f"{1e9 * min(short) / TOKENS:.0f} and {1e9 * min(long) / TOKENS:.0f} ns for all layers; "
        f"a token sees {pairs(1024):.0f} and {pairs(32768):.0f} keys",
    )


def long_sequences(place, shards):
    """llama-15m with full attention on one row of T: peak memory, and a step at 32k."""
    peaks, rate = {}, 0
    for seq_len in (8192, 16384, 32768):
        workload = Workload("llama-15m", seq_len, 1)
        steps, child = hearth.train(
            place, shards, workload.options(), lambda steps: len(steps) >= 1
        )
        peaks[seq_len], rate = child.peak_bytes, steps[-1]["tokens_per_s"]
    first, second = peaks[16384] - peaks[8192], peaks[32768] - peaks[16384]
    sizes = ", ".join(
        f"{peak / 2**20:.0f} MiB at {seq_len // 1024}k" for seq_len, peak in peaks.items()
    )
    return [
        claim(
            "llama-15m trains at T = 32k",
            f"{peaks[32768] / 2**20:.0f} MiB peak",
            "trains",
            True,
            f"{rate:.0f} tokens/s",
        ),
        claim(
            "memory is linear in T",
            f"{second / first:.2f}× more for twice the tokens",
            "≤ 2.2×",
            second <= 2.2 * first,
            sizes,
        ),
    ]
