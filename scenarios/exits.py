"""How commands end: exit codes, and mistakes as a message instead of a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from simulator.errors import ConfigurationError

A_RUN_FAILED, MISTAKE, UNEXPECTED, INTERRUPTED = 1, 2, 3, 130


@contextmanager
def mistakes_reported(debug: bool) -> Iterator[None]:
    """Turn what can go wrong into a message and an exit code."""
    try:
        yield
    except ConfigurationError as error:
        raise exit_with(str(error), MISTAKE) from None
    except KeyboardInterrupt as error:
        text = f"interrupted: {str(error) or 'nothing was written'}"
        raise exit_with(text, INTERRUPTED) from None
    except Exception as error:
        if debug:
            raise
        first = next(iter(str(error).splitlines()), "")
        text = f"unexpected {type(error).__name__}: {first}"
        raise exit_with(f"{text}\nPlease report it; --debug shows where.", UNEXPECTED) from None


def exit_with(text: str, code: int) -> typer.Exit:
    """Say why, on stderr, and what to raise."""
    typer.echo(f"straggler: {text}", err=True)
    return typer.Exit(code)
