"""``make bench``: every speed the project claims, next to its bare baseline, in one run."""

from __future__ import annotations

import argparse
from importlib import import_module

from rich.console import Console
from rich.table import Table

from tests.benchmarks.timing import Line

PARTS = ("schedules", "gradients", "environments", "executors", "large", "sweeps")


def show(title: str, lines: list[Line], console: Console) -> None:
    """Print a part's table."""
    table = Table(title=title, title_justify="left")
    for heading, justify in (("", "left"), ("rate", "right"), ("bare", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("held to")
    for line in lines:
        table.add_row(
            line.what,
            f"{line.rate:,.0f}",
            f"{line.baseline:,.0f}",
            line.unit,
            f"{line.ratio:.2f}",
            line.wanted,
        )
    console.print(table)


def main() -> None:
    """Run the parts that were asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    chosen = parser.parse_args().parts or PARTS
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)
    for part in chosen:
        show(part, import_module(f"tests.benchmarks.{part}").run(), console)


if __name__ == "__main__":
    main()
