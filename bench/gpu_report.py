"""The results on a GPU as JSON and as Markdown."""

import json
from datetime import date

from claims.training import by_workload, hearth_of
from report import absent_list, table

SPEED_AIM, PEAK_AIM = 1.2, 0.55  # to torch.compile, and of the measured peak


def write(directory, machine, report):
    """Writes DIRECTORY/<gpu>-<date>.json and .md, and returns the Markdown."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{machine.slug()}-{date.today()}"
    report = {"machine": machine.description(), "date": str(date.today()), **report}
    text = markdown(report)
    (directory / f"{stem}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    (directory / f"{stem}.md").write_text(text)
    return text


def markdown(report):
    peers = ", ".join(f"{name} {v or 'absent'}" for name, v in report["peers"].items())
    parts = [
        f"# {report['machine']['gpu']}, {report['date']}",
        f"`scripts/device-check.sh` at {report['revision']}: {report['settings']}, implementations "
        f"in turn, medians. Peers: {peers}.",
        machine_table(report["machine"]),
        steps_table(report["results"]),
        attention_table(report["attention"]),
        *map(profile_table, report["profiles"]),
        absent_list(report["absent"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def machine_table(machine):
    rows = []
    if "bf16_flops_per_s" in machine:
        rows = [
            ("bf16 matmul, peak", tera(machine["bf16_flops_per_s"])),
            ("copy (read + written)", f"{machine['copy_bytes_per_s'] / 1e9:.0f} GB/s"),
            ("memory", f"{machine['memory_bytes_of_gpu'] / 2**30:.1f} GiB"),
        ]
    names = "driver power_limit clock_now clock_most temperature cpu threads kernel".split()
    rows += [(name.replace("_", " "), machine[name]) for name in names if name in machine]
    return "## Machine\n\n" + table(["", ""], rows)


def tera(rate):
    return f"{rate / 1e12:.1f} TFLOP/s"


def steps_table(results):
    rows = []
    for (model, seq_len, batch), group in by_workload(results).items():
        ours = hearth_of(group)
        for result in group:
            beside = ours and result is not ours
            rows.append(
                (
                    f"{model}, T = {seq_len}, {batch} tokens a step",
                    result["impl"],
                    f"{result['tokens_per_s']:.0f}",
                    f"{100 * result['fraction_of_peak']:.1f}%",
                    f"{result.get('device_bytes', 0) / 2**30:.2f}",
                    f"{ours['tokens_per_s'] / result['tokens_per_s']:.2f}×" if beside else "",
                )
            )
    if not rows:
        return ""
    header = ["", "", "tokens/s", "MFU", "peak GiB", "hearth's speed to it"]
    return (
        "## Training steps\n\nbf16: forward, backward, clipping, AdamW and data. MFU counts the "
        "FLOPs that the model needs, attention causal and exact, over the matmul peak measured in "
        f"this run. Aims: {SPEED_AIM}× torch.compile, {100 * PEAK_AIM:.0f}% of the peak.\n\n"
        + table(header, rows)
    )


def attention_table(rows):
    lines = [
        (
            f"T = {row['T']}, D = {row['D']}, {row['heads']} heads, {row['rows']} rows"
            + (f", window {row['window']}" if row["window"] >= 0 else ""),
            row["impl"],
            tera(row["forward_flops_per_s"]),
            tera(row["backward_flops_per_s"]),
        )
        for row in sorted(rows, key=lambda row: (row["D"], row["T"], row["window"]))
    ]
    return (
        "## Attention\n\nOf pairs that are seen; PyTorch is scaled_dot_product_attention, with a "
        "mask where there is a window.\n\n" + table(["", "", "forward", "backward"], lines)
        if lines
        else ""
    )


def profile_table(profile):
    rows = []
    for row in profile["operations"]:
        bound = "peak_flops" if "flops_per_s" in row else "peak_bytes_per_s"
        rate = row.get("flops_per_s") or row["bytes_per_s"]
        text = tera(rate) if "flops_per_s" in row else f"{rate / 1e9:.0f} GB/s"
        time, share = f"{1e3 * row['seconds']:.2f}", f"{100 * row['share']:.1f}%"
        of_peak = f"{100 * rate / profile[bound]:.0f}%"
        rows.append((row["operation"], time, share, text, of_peak))
    return (
        f"## Where hearth's step goes: {profile['model']}, T = {profile['seq_len']}, "
        f"{profile['batch_tokens']} tokens\n\nOne operation at a time: "
        f"{1e3 * profile['seconds']:.1f} ms, micro-batches of {profile['micro_batch']} rows, "
        f"{100 * profile['outside_share']:.1f}% of it outside matmuls and attention.\n\n"
        + table(["", "ms", "share", "rate", "of the peak"], rows)
    )
