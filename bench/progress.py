"""Progress on stderr, with the time that is left."""

import sys
import time


class Progress:
    """`total` is the expected time of all parts in seconds; each part names its own share."""

    def __init__(self, total):
        self.total, self.done, self.started = total, 0, time.perf_counter()

    def part(self, text, expected=0):
        elapsed = time.perf_counter() - self.started
        pace = elapsed / self.done if self.done > 60 else 1
        left = max(0, self.total - self.done) * pace
        print(
            f"[{elapsed / 60:5.1f} min, about {left / 60:.0f} left] {text}",
            file=sys.stderr,
            flush=True,
        )
        self.done += expected

    def say(self, text):
        print(f"    {text}", file=sys.stderr, flush=True)
