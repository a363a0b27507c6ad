"""A batch: trials that differ in seed and hyperparameters only, executed side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scenarios.trial import Trial
from scenarios.workshop import Progress, Workshop


@dataclass
class Batch:
    """Trials of one coordinator and update rule.

    Attributes:
        workshop: what they share.
        trials: by method, then by seed.
        width: of the grid they are executed in, see ``compiled_grid.Grid``.
        failed: those that could not be simulated, and why.
    """

    workshop: Workshop
    trials: list[Trial]
    width: int = 1
    failed: list[tuple[Trial, Exception]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is, for progress."""
        names = list(dict.fromkeys(trial.method.name for trial in self.trials))
        seeds = list(dict.fromkeys(trial.seed for trial in self.trials))
        cells = names[0] if len(names) == 1 else f"{names[0].split(' ')[0]} ({len(names)} cells)"
        return f"{cells} seed {seeds[0]}" if len(seeds) == 1 else f"{cells}, {len(seeds)} seeds"

    def simulate(self, progress: Progress) -> None:
        """Simulate them all; one that can not be leaves the batch for ``failed``."""
        for trial in list(self.trials):
            try:
                trial.simulate(progress)
            except Exception as error:  # noqa: BLE001  told by whoever runs the batch
                self.trials.remove(trial)
                self.failed.append((trial, error))

    def train(self, progress: Progress) -> None:
        """Execute and judge them. What is done stays in the trials if it is interrupted.

        Raises:
            ConfigurationError: not even one fits into the memory allowed.
        """
        if not self.trials:
            return
        grid = self.workshop.grid(
            [(t.method, t.seed, t.simulated) for t in self.trials], self.width
        )
        versions = [trial.versions for trial in self.trials]
        total = sum(map(len, versions))
        for done, (index, snapshot) in enumerate(grid.snapshots(versions), start=1):
            self.trials[index].take(snapshot)
            progress("training", done / total)
        for trial, lengths in zip(self.trials, grid.lengths, strict=True):
            trial.finish(lengths)


def batches(workshop: Workshop, trials: Iterable[Trial]) -> list[Batch]:
    """Trials by what they share, in the order of the first of each."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        method = trial.method
        key = repr((method.coordinator, sorted(method.arguments.items()), method.update))
        groups.setdefault(key, []).append(trial)
    return [Batch(workshop, members) for members in groups.values()]
