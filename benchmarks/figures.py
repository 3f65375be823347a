"""The figures of a comparison: kept one by one, shown as tables of medians and of ratios, written as JSON."""

import json
import statistics

SECONDS = "s"
# What was cached when the work began; docs/benchmarking.md has the details.
FIRST, WARM, LOWER, DROPPED = "first time", "warm", "lower files in memory", "everything dropped"
STATES = [FIRST, WARM, LOWER, DROPPED]


class Figures:
    """Every figure of the run: by work, what was cached, number of readers, and system."""

    def __init__(self):
        self.rows = {}

    def add(self, work, state, unit, system, value, readers=1):
        start = {"work": work, "state": state, "readers": readers, "unit": unit, "values": {}}
        row = self.rows.setdefault((work, state, readers), start)
        row["values"].setdefault(system.name, []).append(value)

    def as_list(self):
        """For the record: by work in the order in which the works first came, then by state, then by readers."""
        works = list(dict.fromkeys(work for work, _, _ in self.rows))
        return sorted(self.rows.values(), key=lambda row: (works.index(row["work"]), STATES.index(row["state"]), row["readers"]))


def median(row, name):
    values = row["values"].get(name)
    return statistics.median(values) if values else None


def title(row):
    return f"{row['work']}, {row['state']}" + (f", {row['readers']} readers" if row["readers"] > 1 else "")


def best_peer(row, systems):
    """Name and median of the best FUSE file system of others; None and None without any."""
    medians = {system["name"]: median(row, system["name"]) for system in systems if system["kind"] == "peer"}
    medians = {name: value for name, value in medians.items() if value is not None}
    if not medians:
        return None, None
    name = (min if row["unit"] == SECONDS else max)(medians, key=medians.get)
    return name, medians[name]


def show(value, unit):
    if value is None:
        return "-"
    return f"{value:.3f}" if unit == SECONDS else f"{value:,.0f}"


def ratio(value, reference):
    return f"{value / reference:.2f}" if value is not None and reference else "-"


def table(header, rows):
    right_aligned = "---:|" * (len(header) - 2)
    return "\n".join([f"| {' | '.join(header)} |", f"|---|---|{right_aligned}", *(f"| {' | '.join(cells)} |" for cells in rows)])


def medians_table(rows, names):
    """A table in Markdown: the medians of systems."""
    cells = ([title(row), row["unit"], *(show(median(row, name), row["unit"]) for name in names)] for row in rows)
    return table(["work", "unit", *names], cells)


def tables(record):
    """Two tables in Markdown: medians of all systems, and ratios of each to the source and of pmfs to its best peer."""
    systems, rows = record["systems"], record["figures"]
    names = [system["name"] for system in systems]
    others = [system["name"] for system in systems if system["kind"] != "source"]
    ours = [system["name"] for system in systems if system["kind"] == "pmfs"]

    def ratios(row):
        source, (peer, best) = median(row, "source"), best_peer(row, systems)
        to_source = [ratio(median(row, name), source) for name in others]
        return [title(row), row["unit"], *to_source, *(ratio(median(row, name), best) for name in ours), peer or "-"]

    header = ["work", "unit", *(f"{name} / source" for name in others), *(f"{name} / best peer" for name in ours), "best peer"]
    return medians_table(rows, names) + "\n\n" + table(header, map(ratios, rows))


def write(record, path):
    path.write_text(json.dumps(record, indent=1) + "\n")
