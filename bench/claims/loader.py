"""What a step waits for its data, the dataset not in the page cache."""

from claims.claim import claim
from peers import hearth
from place import drop_from_cache
from workloads import Workload


def measure(place, shards, rounds):
    workload = Workload("llama-15m", 256, 32)
    waited = total = 0
    for _ in range(rounds):
        cold = False

        def warm_then_cold(steps):
            nonlocal cold
            if steps and not cold:
                drop_from_cache(shards)
                cold = True
            return len(steps) > 8

        steps, _ = hearth.train(place, shards, workload.options(), warm_then_cold)
        waited += sum(step["data_wait_ms"] for step in steps[1:])
        total += sum(step["step_ms"] for step in steps[1:])
    share = waited / total
    return [
        claim(
            "a step of llama-15m waits for data, page cache cold",
            f"{100 * share:.3f}%",
            "< 0.5%",
            share < 0.005,
            f"{waited / rounds / 8:.2f} ms of {total / rounds / 8:.0f}",
        )
    ]
