"""The plots: few colours, no frames, the same look in each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from quorate_papers import pulsar
from quorate_papers.capacity import Trace
from quorate_papers.conservation import ALGORITHMS as SHARING
from quorate_papers.conservation import Point as Shared
from quorate_papers.conservation import medians
from quorate_papers.costs import DURABILITIES
from quorate_papers.costs import Point as Cost
from quorate_papers.guaranteed import Trace as GuaranteeTrace
from quorate_papers.instances import RESOURCES
from quorate_papers.pisces import Trace as PartitionTrace
from quorate_papers.placement import ALGORITHMS, HOWS
from quorate_papers.placement import Point as Placed
from quorate_papers.seen import BRIEF, CONTROL, TENANTS, Seen

INK, PALE = "#3b4252", "#d8dee9"
COLOURS = ["#2e6f95", "#d08c60", "#6a994e", "#8e7dbe", "#bc4b51"]
NAMES = {
    "cdrf": "C-DRF, request by request",
    "cdrf-exact": "C-DRF, exact",
    "head": "Head-DRF",
    "all": "All-DRF",
    "level": "Level-DRF (ours)",
    "online": "on-line",
    "offline": "off-line",
}
# The paper's numbers in its text (§6.2, §6.3), of the right ends of its curves.
MOST = 150
PAPER_REPLICAS = 200
PAPER_FREE_PERCENT = 2
PAPER_EFFICIENCY_PERCENT = {"all": 95, "head": 75}
PAPER_MESSAGES = 150
PAPER_SPEEDUP = 5
PLACING = {"shape": "ours", "filo": "Algorithm 1"}
STYLE = {
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.frameon": True,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "legend.fontsize": 9,
    "legend.handlelength": 3.2,  # so that dashes are seen
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "font.family": "DejaVu Sans",
    "svg.hashsalt": "quorate",  # the same plot is the same file
}


def placement(points: list[Placed], path: Path, *, is_papers: bool = False) -> None:
    """Figure 5: servers, tenants and replicas; replicas a server; free amounts. `is_papers`: its regime of resources,
    so that its numbers can be compared."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        counts, loads, free, beside = axes.flat
        for how, line in zip(HOWS, ("-", "--"), strict=True):
            chosen = [point for point in points if point.how == how and point.algorithm == "shape"]
            x = [point.applicants for point in chosen]
            for colour, (what, name) in zip(
                COLOURS, [("replicas", "replicas"), ("tenants", "tenants"), ("used_servers", "servers")], strict=False
            ):
                y = [getattr(point, what) for point in chosen]
                counts.plot(x, y, line, marker="o", color=colour, label=f"{name}, {NAMES[how]}")
            colour = COLOURS[HOWS.index(how)]
            average = [point.replicas_per_server for point in chosen]
            spread = [point.replicas_per_server_ci95 for point in chosen]
            loads.errorbar(x, average, yerr=spread, fmt=line, marker="o", color=colour, capsize=2, label=NAMES[how])
            for i, resource in enumerate(RESOURCES):
                y = [100 * point.free[i] for point in chosen]
                free.plot(x, y, line, marker="o", color=COLOURS[i], label=f"{resource}, {NAMES[how]}")
            for shade, algorithm in enumerate(ALGORITHMS):
                own = [point for point in points if point.how == how and point.algorithm == algorithm]
                y = [100 * (1 - point.allocated) for point in own]
                label = f"{PLACING[algorithm]}, {NAMES[how]}"
                beside.plot(x, y, line, marker="o", color=COLOURS[shade], label=label)
        if is_papers:
            _paper(counts, MOST, PAPER_REPLICAS, COLOURS[0], "replicas, on-line: the paper")
            _paper(beside, MOST, PAPER_FREE_PERCENT, INK, "the paper: less than", below=True)
        counts.set_title("Servers used, tenants, replicas")
        loads.set_title("Replicas on one server")
        free.set_title("Left free, % of all servers")
        beside.set_title("Left free of the scarce resource, %")
        beside.set_yscale("log")
        for axis, top in ((counts, 440), (free, 125), (beside, 300)):
            axis.set_ylim(top=top)  # room for the legend
        _finish(figure, (counts, loads, free, beside), path)


def allocation_times(points: list[pulsar.Point], path: Path) -> None:
    """Pulsar's Figure 16: milliseconds over the number of machines, and how many of them are active."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        titles = {"drf": "DRF", "hierarchical-drf": "Hierarchical DRF"}
        for axis, (policy, title) in zip(axes, titles.items(), strict=True):
            for colour, active in zip(COLOURS, pulsar.ACTIVE, strict=False):
                own = [point for point in points if (point.policy, point.active) == (policy, active)]
                x, y = [point.vms for point in own], [point.ms for point in own]
                axis.plot(x, y, marker="o", color=colour, label=f"{active:.0%} active")
            axis.set_title(f"{title}: ms")
            axis.set_yscale("log")
        for active, seconds in pulsar.PAPER_S.items():
            _paper(axes[0], pulsar.SIZES[-1], seconds * 1_000, INK, f"the paper, {active:.0%}")
        _finish(figure, tuple(axes), path, "machines")


def capacity(traces: list[Trace], path: Path) -> None:
    """Pulsar's Figure 14: the estimate over time, and what was served."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(traces), figsize=(10, 4), layout="constrained")
        for axis, trace in zip(axes, traces, strict=True):
            most = 1.6 * max(amount for _, amount in trace.served)  # estimates begin far above
            axis.plot(*zip(*trace.served, strict=True), color=COLOURS[1], linewidth=1, label="served")
            shown = [(at, min(amount, most)) for at, amount in trace.estimates]
            axis.step(*zip(*shown, strict=True), where="post", color=COLOURS[0], label="estimate")
            axis.set_title(trace.title)
            axis.set_ylim(0, most)
        _finish(figure, tuple(axes), path, "seconds")


def guaranteed(trace: GuaranteeTrace, path: Path) -> None:
    """Pulsar's Figure 12 in small: two groups of one project, and what its policy gives each."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 1, figsize=(10, 5), layout="constrained", sharex=True)
        for number, (axis, rates, promised) in enumerate(zip(axes, trace.rates, trace.promised, strict=True)):
            axis.step(
                *zip(*promised, strict=True), where="post", color=INK, linewidth=1, linestyle=":", label="promised"
            )
            axis.plot(*zip(*rates, strict=True), color=COLOURS[number], linewidth=1.2, label="appends/s")
            axis.set_title(f"{('First', 'Second')[number]} group")
            axis.set_ylim(0, 1.25 * max(rate for _, rate in promised))
        _finish(figure, tuple(axes), path, "seconds")


def tenants(traces: list[PartitionTrace], path: Path) -> None:
    """Pisces's Figures 5, 6 and 8: each tenant's share over time."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        for axis, trace in zip(axes.flat, traces[:4], strict=True):
            for number, shares in enumerate(trace.shares):
                axis.plot(trace.at_s, shares, color=COLOURS[number % len(COLOURS)], linewidth=1)
            axis.axhline(1, color=INK, linewidth=0.8, linestyle=":")
            axis.set_title(trace.title)
            axis.set_ylim(0, 1.4)
        axes[0][0].set_ylabel("appends/s over the reservation")
        _finish(figure, tuple(axes.flat), path, "seconds")


def tenants_latencies(trace: PartitionTrace, path: Path) -> None:
    """Pisces's Figure 7: latencies of tenants within their reservations, and of those that want far more."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
        for place, (label, number) in enumerate((("p50", 0), ("p99", 1))):
            ms = [each[number] for each in trace.latencies]
            at = [tenant + 0.4 * place for tenant in range(len(ms))]
            axis.bar(at, ms, width=0.4, color=COLOURS[place], label=label)
        axis.set_xticks([tenant + 0.2 for tenant in range(len(trace.pressed))])
        axis.set_xticklabels([f"{pressed:g}×" for pressed in trace.pressed])
        axis.set_ylabel("ms")
        axis.set_yscale("log")
        axis.set_title(trace.title)
        _finish(figure, (axis,), path, "appends offered, over the reservation")


def conservation(points: list[Shared], path: Path, *, is_papers: bool = False) -> None:
    """Figure 6: time, messages, efficiency, fairness. `is_papers`: its regime of resources."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        time, messages, efficiency, fairness = axes.flat
        x = sorted({point.applicants for point in points})
        for algorithm, colour in zip(SHARING, COLOURS, strict=True):
            style: dict[str, Any] = {"marker": "o", "color": colour, "label": NAMES[algorithm]}
            time.plot(x, [us / 1_000 for us in medians(points, algorithm, "time_us")], **style)
            messages.plot(x, medians(points, algorithm, "messages"), **style)
            efficiency.plot(x, [100 * part for part in medians(points, algorithm, "efficiency")], **style)
            fairness.plot(x, medians(points, algorithm, "deviation"), **style)
        if is_papers:
            for algorithm, percent in PAPER_EFFICIENCY_PERCENT.items():
                colour = COLOURS[SHARING.index(algorithm)]
                _paper(efficiency, x[-1], percent, colour, "the paper", below=algorithm == "all")
            _paper(messages, x[-1], PAPER_MESSAGES, COLOURS[SHARING.index("all")], "the paper")
            slowest_ms = medians(points, "cdrf", "time_us")[-1] / 1_000
            _paper(time, x[-1], slowest_ms / PAPER_SPEEDUP, COLOURS[SHARING.index("all")], "the paper", below=True)
        time.set_yscale("log")
        time.set_title("Time (slowest server), ms")
        messages.set_title("Messages in one interval")
        efficiency.set_title("Given out of the scarce resource, % of C-DRF's")
        efficiency.set_ylim(0, 105)
        fairness.set_title("Deviation of utility ÷ mean (less is more even)")
        fairness.set_ylim(bottom=0)
        _finish(figure, tuple(axes.flat), path)


def sharing(seen: Seen, folder: Path) -> None:
    """Figure 7: appends/s of each tenant over time, by phase."""
    sla = seen.sla_per_s
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(12, 4.2), layout="constrained")
        for tenant, colour in zip(TENANTS, COLOURS, strict=False):
            chosen = [sample for sample in seen.samples if sample.tenant == tenant]
            y = [min(sample.acked_per_s, 3 * sla) for sample in chosen]
            x = [sample.ended_s for sample in chosen]
            # Dots as pixels: there are thousands, and as shapes each is a line of the file.
            axis.plot(x, y, ".", markersize=3, color=colour, label=tenant, rasterized=True)
        axis.axhline(sla, color=INK, linewidth=0.8, linestyle="--", label="SLA of each")
        begins: dict[str, float] = {}
        for sample in seen.samples:
            if chapter := _chapter(sample.phase):
                begins.setdefault(chapter, sample.began_s)
        for chapter, began_s in begins.items():
            axis.axvline(began_s, color=PALE, linewidth=1)
            axis.text(began_s, 3.05 * sla, chapter, fontsize=8, rotation=30, color=INK)
        axis.set_ylabel(f"appends/s (cut at {3 * sla:,})", fontsize=9)
        axis.set_ylim(0, 3.02 * sla)
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.margins(x=0.01)
        axis.set_xlabel("seconds", fontsize=9)
        axis.tick_params(length=0)
        figure.legend(loc="outside lower center", ncols=4, markerscale=3)
        figure.savefig((folder / "figure-7").with_suffix(".svg"), metadata={"Date": None}, dpi=200)
        plt.close(figure)


def _chapter(phase: str) -> str | None:
    """The part of the run that begins with a phase; none where it goes on: C comes and goes many times."""
    if phase.startswith((BRIEF, "C is back")):
        return BRIEF if phase.startswith(BRIEF) else "C is back, and idles again"
    if phase.startswith(("C idles again", "before the control", "control: nobody")):
        return None
    return "limiters off again" if phase.startswith(CONTROL) else phase.rstrip("+")


def costs(points: list[Cost], folder: Path) -> None:
    """Figures 3 and 4: throughput, the server's CPU, CPU of an append, over the size."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
        rate, cores, each = axes
        for colour, durability in zip(COLOURS, DURABILITIES, strict=False):
            for shards, line in zip(sorted({point.shards for point in points}), ("-", "--"), strict=False):
                own = [point for point in points if (point.durability, point.shards) == (durability, shards)]
                x = [point.size for point in own]
                label = f"{durability.replace('_', ' ')}, {shards} shard{'s' if shards > 1 else ''}"
                rate.plot(x, [point.per_s for point in own], line, marker="o", color=colour, label=label)
                cores.plot(x, [point.cores for point in own], line, marker="o", color=colour, label=label)
                cores.plot(x, [point.busiest for point in own], line, marker=".", color=colour, alpha=0.4)
                heads = [(point.size, point.head_us) for point in own if point.head_us is not None]
                each.plot([size for size, _ in heads], [us for _, us in heads], line, marker="o", color=colour)
        rate.set_title("Appends/s")
        cores.set_title("Cores of a server (pale: busiest thread)")
        each.set_title("CPU of an append at the head, µs")
        for one in axes:
            one.set_xscale("log", base=2)
        for one in (rate, each):
            one.set_yscale("log")
        _finish(figure, tuple(axes[:2]), folder / "figure-3", "bytes")


def _paper(axis: Any, x: float, y: float, colour: str, label: str, *, below: bool = False) -> None:
    """A cross with its label above or below, away from the lines."""
    axis.plot([x], [y], "x", color=colour, markersize=9, markeredgewidth=2)
    at, box = (-8, -12 if below else 6), {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    axis.annotate(label, (x, y), xytext=at, textcoords="offset points", ha="right", fontsize=8, color=colour, bbox=box)


def _finish(figure: Any, axes: tuple[Any, ...], path: Path, over: str = "applicants") -> None:
    for one in axes:
        one.set_xlabel(over, fontsize=9)
        one.tick_params(length=0)
    handles, labels = axes[0].get_legend_handles_labels()
    if all(one.get_legend_handles_labels()[1] == labels for one in axes):
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
    else:
        for one in axes:
            one.legend(ncols=2 if len(one.get_lines()) > 4 else 1)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
