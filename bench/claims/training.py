"""What follows from the training steps: shares of the peak, and ratios to the peers."""

from claims.claim import claim

OF_PEAK = {("llama-110m", 1024): 0.80, ("llama-15m", 256): 0.60}
OUTSIDE = {"llama-110m": 0.12}


def by_workload(results):
    """The results of each workload."""
    found = {}
    for result in results:
        found.setdefault((result["model"], result["seq_len"], result["batch_tokens"]), []).append(
            result
        )
    return found


def hearth_of(group):
    """hearth's result, the first where there are several, or None."""
    return next((result for result in group if result["impl"] == "hearth"), None)


def claims(results, profiles):
    found = []
    for (model, seq_len, _), group in by_workload(results).items():
        name, ours = f"{model}, T = {seq_len}", hearth_of(group)
        if not ours:
            continue
        if (model, seq_len) in OF_PEAK:
            found.append(of_peak(name, ours, OF_PEAK[model, seq_len]))
        pytorch = [result for result in group if result["impl"].startswith("pytorch")]
        if pytorch:
            found += against_pytorch(
                name, ours, max(pytorch, key=lambda result: result["tokens_per_s"])
            )
        found += [against_llmc(name, ours, result) for result in group if result["impl"] == "llm.c"]
        found += [
            against_nanochat(name, ours, result) for result in group if result["impl"] == "nanochat"
        ]
    return found + [outside(profile) for profile in profiles if profile["model"] in OUTSIDE]


def of_peak(name, ours, aim):
    share = ours["fraction_of_peak"]
    return claim(
        f"{name}: share of the bf16 peak",
        f"{100 * share:.1f}%",
        f"≥ {100 * aim:.0f}%",
        share >= aim,
    )


def against_pytorch(name, ours, best):
    speed, memory = (ours[key] / best[key] for key in ("tokens_per_s", "peak_rss_bytes"))
    limit = 1 / ours["fraction_of_peak"] * speed
    detail = (
        f"{best['impl']}, micro-batches of {best['micro_rows']} rows; "
        f"at the peak it would be {limit:.2f}×"
    )
    return [
        claim(f"{name}: speed to the best PyTorch", f"{speed:.2f}×", "≥ 2×", speed >= 2, detail),
        claim(f"{name}: memory to the best PyTorch", f"{memory:.2f}×", "≤ 0.6×", memory <= 0.6),
    ]


def against_llmc(name, ours, theirs):
    speed = ours["tokens_per_s"] / theirs["tokens_per_s"]
    return claim(
        f"{name}: speed to llm.c", f"{speed:.1f}×", "≥ 20×", speed >= 20, "bf16 to its fp32"
    )


def against_nanochat(name, ours, theirs):
    speed = ours["tokens_per_s"] / theirs["tokens_per_s"]
    return claim(f"{name}: speed to nanochat's own", f"{speed:.2f}×", "≥ 2×", speed >= 2)


def outside(profile):
    share, aim = profile["outside_share"], OUTSIDE[profile["model"]]
    return claim(
        f"{profile['model']}, T = {profile['seq_len']}: outside matmuls and attention",
        f"{100 * share:.1f}%",
        f"≤ {100 * aim:.0f}%",
        share <= aim,
    )
