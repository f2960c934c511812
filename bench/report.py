"""The results as JSON and as Markdown."""

import json
from datetime import date

from claims.training import by_workload, hearth_of


def write(directory, machine, report):
    """Writes DIRECTORY/<machine>-<date>.json and .md, and returns the Markdown."""
    directory.mkdir(parents=True, exist_ok=True)
    stem = f"{machine.slug()}-{date.today()}"
    report = {"machine": machine.description(), "date": str(date.today()), **report}
    text = markdown(report)
    (directory / f"{stem}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    (directory / f"{stem}.md").write_text(text)
    return directory / f"{stem}.md", text


def markdown(report):
    parts = [
        f"# {report['machine']['cpu']}, {report['machine']['threads']} threads, {report['date']}",
        f"`make bench` at {report['revision']}: {report['settings']}. All in one run, "
        "implementations in turn, medians; a ratio compares what stands in this file only. Peers: "
        + ", ".join(f"{name} {version or 'absent'}" for name, version in report["peers"].items())
        + ".",
        machine_table(report["machine"]),
        steps_table(report["results"]),
        claims_table(report["claims"]),
        *map(matmul_table, report["matmuls"]),
        *map(profile_table, report["profiles"]),
        absent_list(report["absent"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header, rows):
    lines = [header, ["---" if i == 0 else "---:" for i in range(len(header))], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def machine_table(machine):
    tera = {
        "bf16_flops_per_s": "bf16 dot products, peak",
        "fp32_flops_per_s": "fp32 dot products, peak",
    }
    giga = {
        "read_bytes_per_s": "memory, reading",
        "copy_bytes_per_s": "memory, copying (read + written)",
    }
    rows = [
        (name, f"{machine[key] / 1e12:.3f} TFLOP/s") for key, name in tera.items() if key in machine
    ]
    rows += [
        (name, f"{machine[key] / 1e9:.0f} GB/s") for key, name in giga.items() if key in machine
    ]
    rows += [
        ("memory installed", f"{machine['memory_bytes'] / 2**30:.1f} GiB"),
        ("vector units", " ".join(machine["vector_units"])),
        ("transparent huge pages", machine["huge_pages"]),
        *((name, machine[name]) for name in ("kernel", "libc", "compiler")),
    ]
    return "## Machine\n\n" + table(["", ""], rows)


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
                    result["dtype"],
                    f"{result['tokens_per_s']:.0f}",
                    f"{100 * result['fraction_of_peak']:.1f}%",
                    f"{result['peak_rss_bytes'] / 2**20:.0f}",
                    f"{ours['tokens_per_s'] / result['tokens_per_s']:.2f}×" if beside else "",
                    f"{ours['peak_rss_bytes'] / result['peak_rss_bytes']:.2f}×" if beside else "",
                )
            )
    header = "|||tokens/s|of peak|peak MiB|hearth's speed to it|hearth's memory to it".split("|")
    return (
        "## Training steps\n\nForward, backward, clipping, AdamW and data. The share of the peak "
        "counts the FLOPs that the model needs, attention causal and exact, for everyone.\n\n"
        + table(header, rows)
    )


def matmul_table(entry):
    """Each matmul of the step: oneDNN alone, plain and packed, beside hearth's inside the step."""
    rows, weights = [], {"plain": 0, "packed": 0, "hearth": 0}
    for shape in entry["matmuls"]:
        work = 2 * shape["M"] * shape["N"] * shape["K"] * shape["count"]
        rates = {
            "plain": shape["plain_flops_per_s"],
            "packed": shape["packed_flops_per_s"],
            "hearth": shape["hearth_flops_per_s"],
        }
        for name, rate in rates.items():
            weights[name] += work / rate if rate else float("inf")
        rows.append(
            (
                shape_title(shape),
                *(f"{rate / 1e9:.0f}" for rate in rates.values()),
            )
        )
    title = f"## Matmuls of {entry['model']}, T = {entry['seq_len']}\n\n"
    if not rows:
        return title + f"oneDNN is absent: {entry['absent']}"
    total = sum(2 * s["M"] * s["N"] * s["K"] * s["count"] for s in entry["matmuls"])
    rows.append(
        (
            "all, weighted",
            *(f"{total / weights[name] / 1e9:.0f}" for name in ("plain", "packed", "hearth")),
        )
    )
    return (
        title
        + "GFLOP/s. oneDNN alone, its operands plain or packed beforehand; "
        + "hearth's inside the step.\n\n"
        + table(["", "oneDNN plain", "oneDNN packed", "hearth"], rows)
    )


def shape_title(shape):
    name = shape["operation"].removeprefix("matmul ")
    return f"{name} {shape['M']} × {shape['N']} × {shape['K']}"


def profile_table(profile):
    rows = []
    for row in profile["operations"]:
        rate = (
            f"{row['flops_per_s'] / 1e9:.0f} GFLOP/s"
            if "flops_per_s" in row
            else f"{row['bytes_per_s'] / 1e9:.1f} GB/s"
        )
        rows.append(
            (row["operation"], f"{1e3 * row['seconds']:.1f}", f"{100 * row['share']:.1f}%", rate)
        )
    return (
        f"## Where hearth's step goes: {profile['model']}, T = {profile['seq_len']}, "
        f"{profile['batch_tokens']} tokens\n\n{1e3 * profile['seconds']:.0f} ms, "
        f"{100 * profile['outside_share']:.1f}% of it outside matmuls and attention.\n\n"
        + table(["", "ms", "share", "rate"], rows)
    )


def claims_table(claims):
    marks = {True: "yes", False: "no", None: "–"}
    rows = [(c["claim"], c["value"], c["target"], marks[c["met"]], c["detail"]) for c in claims]
    return "## Claims\n\n" + table(["", "measured", "aim", "reached", ""], rows) if rows else ""


def absent_list(absent):
    lines = [f"- {name}, {workload}: {reason}" for name, workload, reason in absent]
    return "## Absent\n\n" + "\n".join(lines) if lines else ""
