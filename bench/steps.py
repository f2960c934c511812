"""Whole training steps: every implementation in turn, round after round, and the median of each."""

import statistics

from child import Absent
from peers.hearth import Hearth, HearthFp32
from peers.llmc import LlmC
from peers.nanochat import Nanochat
from peers.pytorch import PyTorch
from workloads import Workload

# GPT-2's 124M in llama's form: the same matrices but for the MLP's shape, the same FLOPs. First the
# batch that llm.c is set to, then a whole context.
GPT2_NAME = "llama-124m (GPT-2's sizes)"
GPT2 = Workload("llama-110m", 64, 4, vocab=50257, name=GPT2_NAME)
GPT2_CONTEXT = Workload("llama-110m", 1024, 1, vocab=50257, name=GPT2_NAME)
ONCE = (GPT2_CONTEXT,)  # llm.c takes some 25 s a step

# nanochat's models. Every layer sees all: its windows without FlashAttention are masks over all pairs.
FULL = ("--window-pattern", "L")
D6 = Workload("d6", 512, 32, vocab=32768, name="nanochat d6", changes=("--head-dim", 64, *FULL))
D12 = Workload("d12", 1024, 8, vocab=32768, name="nanochat d12", changes=FULL)

NOT_QUICK = (GPT2_CONTEXT, D6, D12)


def comparisons(place, venv, data, models, peers):
    """Every workload with those who train it: the models given, then those that a peer has fixed.
    `peers` are names, with the checkout where there is one."""
    tuned = {}
    pytorch = [
        PyTorch(name, place, venv, data, tuned)
        for name in ("pytorch-eager", "pytorch-compile", "pytorch-plain")
        if name in peers
    ]
    pairs = [(workload, [Hearth(place, data), *pytorch]) for workload in models]
    if "llm.c" in peers:
        llmc = LlmC(place, peers["llm.c"], data)
        for workload in (GPT2, GPT2_CONTEXT):
            pairs.append((workload, [Hearth(place, data), HearthFp32(place, data), llmc]))
    if "nanochat" in peers:
        for workload, names in ((D6, ("nanochat", "nanochat-malloc")), (D12, ("nanochat",))):
            theirs = [Nanochat(name, place, venv, peers["nanochat"]) for name in names]
            pairs.append((workload, [Hearth(place, data), *theirs]))
    return pairs


def plan(place, workload):
    """hearth's plan: its exact_flops_per_token count causal attention and no recomputation."""
    return place.json(place.hearth, "plan", "--json", *workload.options())


def measure(place, workload, peers, rounds, seconds, progress, machine):
    """Returns (results, absent): a row for each implementation, and [implementation, reason]."""
    planned = plan(place, workload)
    hearths = sum(isinstance(peer, Hearth) for peer in peers)
    present, absent = [], []
    for peer in peers:
        try:
            progress.say(f"preparing {peer.name}")
            peer.open(workload)
            present.append(peer)
        except (Absent, RuntimeError) as reason:
            absent.append([peer.name, workload.title, str(reason)])
            progress.say(f"{peer.name} is absent: {reason}")
    if workload.name and len(present) == hearths:
        return [], absent  # a model that is there for a peer's sake
    times = {id(peer): [] for peer in present}  # of each step: seconds, and the peak around it
    for number in range(rounds):
        for peer in list(present):
            try:
                before = machine.measure_peak(place, workload, peer.dtype)
                measured = peer.measure(seconds)
                peak = max(before, machine.measure_peak(place, workload, peer.dtype))
                times[id(peer)] += [(step, peak) for step in measured]
                check_parameters(peer, planned)
            except (Absent, RuntimeError) as reason:
                absent.append([peer.name, workload.title, str(reason)])
                present.remove(peer)
                peer.close()
                progress.say(f"{peer.name} is absent: {reason}")
                continue
            rate = workload.batch_tokens / statistics.median(measured)
            progress.say(
                f"round {number + 1} of {rounds}: {peer.name} {peer.dtype} {rate:.0f} tokens/s, "
                f"{len(measured)} steps"
            )
    return [row(peer, workload, planned, times[id(peer)]) for peer in present], absent


def check_parameters(peer, planned):
    """A peer that says how many parameters it has must have hearth's."""
    count = getattr(peer, "parameters", None)
    if count is not None and count != planned["parameters"]:
        raise RuntimeError(f"{peer.name} has {count} parameters, hearth {planned['parameters']}")


def row(peer, workload, planned, times):
    seconds = [step for step, _ in times]
    rate = workload.batch_tokens / statistics.median(seconds)
    work = workload.batch_tokens * planned["exact_flops_per_token"]
    result = {
        "impl": peer.name,
        "model": workload.name or workload.model,
        "seq_len": workload.seq_len,
        "dtype": peer.dtype,
        "batch_tokens": workload.batch_tokens,
        "tokens_per_s": rate,
        "fraction_of_peak": statistics.median(work / step / peak for step, peak in times),
        "peak_rss_bytes": peer.close(),
        "steps": len(times),
        "fastest_tokens_per_s": workload.batch_tokens / min(seconds),
        "slowest_tokens_per_s": workload.batch_tokens / max(seconds),
    }
    if getattr(peer, "device_bytes", 0):
        result["device_bytes"] = peer.device_bytes
    if hasattr(peer, "spec"):
        result["micro_rows"] = peer.spec["micro_rows"]
    return result
