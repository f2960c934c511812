"""Writes sampling.json: what CPython's random draws for CORE, as SHA-256 of 32-bit little-endian numbers.

    python3 make_sampling.py > sampling.json
"""
import hashlib
import json
import random
import struct

SIZES = range(1, 2001)


def digest(lists):
    hash = hashlib.sha256()
    for numbers in lists:
        hash.update(struct.pack("<%dI" % len(numbers), *numbers))
    return hash.hexdigest()


def shuffled(n):
    order = list(range(n))
    random.Random(1337).shuffle(order)
    return order


def shots(index, n, k):
    return random.Random(1234 + index).sample([i for i in range(n) if i != index], k)


golden = {"shuffle": digest(shuffled(n) for n in SIZES)}
for k in (1, 3, 5, 6, 10, 21, 25, 64):
    golden["shots_%d" % k] = digest(
        shots(index, n, k) for n in SIZES if n > k for index in (0, n // 2, n - 1, 7 * n % 13 % n))
print(json.dumps(golden, indent=1))
