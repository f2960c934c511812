"""hearth's counter-based random numbers (src/base/random.h) in numpy, so that golden files need not hold
weights and data: C makes them again."""
import numpy as np

SEED = 1234
DATA_STREAM = 1000
PROJECTION_STREAM = 2000


def philox(seed, stream, block):
    """Philox4x32-10 of each block number: an array [blocks, 4] of 32-bit words."""
    low = np.uint64(0xFFFFFFFF)
    block = np.asarray(block, np.uint64)
    c = [block & low, block >> np.uint64(32),
         np.full_like(block, stream & 0xFFFFFFFF), np.full_like(block, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=-1)


def random_words(stream, count, start=0):
    """random_u32(SEED, stream, i) for i in start .. start + count."""
    first, last = start // 4, (start + count + 3) // 4
    words = philox(SEED, stream, np.arange(first, last)).reshape(-1)
    return words[start - 4 * first:][:count]


def random_uniform(stream, count):
    return (random_words(stream, count) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def make_rows(vocab, rows, length, step):
    """The tokens of a step, [rows, length]: mostly t -> (5t + 7) mod 31, a quarter noise."""
    words = random_words(DATA_STREAM, rows * length, start=step * rows * length)
    tokens = np.empty((rows, length), np.int64)
    for i, word in enumerate(int(w) for w in words):
        row, position = divmod(i, length)
        if position == 0 or word >> 24 < 64:
            tokens[row, position] = word % vocab
        else:
            tokens[row, position] = (5 * tokens[row, position - 1] + 7) % 31
    return tokens


def describe(k, name, tensor):
    """What is kept of tensor k: its norm, a projection that sees every element, and single elements."""
    values = tensor.detach().double().numpy().reshape(-1)
    weights = random_uniform(PROJECTION_STREAM + k, values.size).astype(np.float64) - 0.5
    stride = max(1, values.size // 12)
    picked = range(0, values.size, stride)
    return {"name": name, "norm": float(np.sqrt((values**2).sum())),
            "projection": float((values * weights).sum()),
            "elements": [[i, float(f"{values[i]:.9g}")] for i in picked]}
