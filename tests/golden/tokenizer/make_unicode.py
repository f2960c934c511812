#!/usr/bin/env python3
"""Writes src/text/unicode_runs.c: the classes of all code points in Unicode 16, which is what tiktoken and
tokenizers know. Needs the package unicodedata2 of version 16.

    make_unicode.py > src/text/unicode_runs.c
"""
import itertools
import textwrap

import unicodedata2

assert unicodedata2.unidata_version == "16.0.0"
WHITE_SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029,
               0x202F, 0x205F, 0x3000}
CLASSES = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 3, "M": 4, "N": 5}  # as in unicode.h
SPACE = 6


def class_of(code):
    category = unicodedata2.category(chr(code))
    return SPACE if code in WHITE_SPACE else CLASSES.get(category, CLASSES.get(category[0], 0))


runs = [(key, len(list(group))) for key, group in itertools.groupby(map(class_of, range(0x110000)))]
while runs[-1][0] == 0:
    runs.pop()
numbers = ", ".join(str(length << 3 | key) for key, length in runs)
print("""/* The classes of all code points in Unicode 16, as runs from U+0000 on: length << 3 | class. Written by
 * tests/golden/tokenizer/make_unicode.py. */
#include "text/unicode.h"

/* clang-format off */
const uint32_t unicode_runs[] = {""")
print(textwrap.fill(numbers + ", 0", 100, initial_indent="    ", subsequent_indent="    "))
print("};")
