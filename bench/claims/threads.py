"""Two threads against one, and all against one where there are more."""

import statistics

from claims.claim import absent, claim
from peers import hearth
from place import threads
from workloads import Workload


def measure(place, shards, rounds):
    if threads() < 2:
        return [absent("two threads against one", "one processor only")]
    claims = []
    for workload in (Workload("llama-15m", 256, 16), Workload("llama-110m", 1024, 2)):
        rates = {1: [], 2: []}
        for _ in range(rounds):
            for count, found in rates.items():
                steps, _ = hearth.train(
                    place,
                    shards,
                    [*workload.options(), "--threads", count],
                    lambda steps: len(steps) > 1 and hearth.timed(steps, 2),
                )
                found += [step["tokens_per_s"] for step in steps[hearth.WARM_UP :]]
        one, two = statistics.median(rates[1]), statistics.median(rates[2])
        claims.append(
            claim(
                f"two threads against one, {workload.model}",
                f"{two / one:.2f}×",
                "≥ 1.9×",
                two / one >= 1.9,
                f"{one:.0f} and {two:.0f} tokens/s",
            )
        )
    return claims
