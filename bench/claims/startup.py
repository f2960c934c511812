"""From starting the program to its first step, on a dataset that is ready."""

import statistics

from claims.claim import claim
from peers import hearth
from workloads import Workload


def measure(place, dataset, rounds):
    workload = Workload("llama-110m", 1024, 1)
    waits, logged = [], []
    for _ in range(rounds):
        steps, _ = hearth.train(
            place, dataset, workload.options(), lambda steps: len(steps) >= 1, look=0.005
        )
        logged.append(steps[0]["at"])
        waits.append(steps[0]["at"] - steps[0]["step_ms"] / 1e3)
    wait = statistics.median(waits)
    return [
        claim(
            "first step of llama-110m after starting",
            f"{wait:.2f} s",
            "≤ 2 s",
            wait <= 2,
            f"begins then; one of 1024 tokens is done after {statistics.median(logged):.2f} s",
        )
    ]
