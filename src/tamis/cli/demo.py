"""`tamis demo`: what works so far, on tables made on the spot."""

import typer

import tamis

__all__ = ["demo"]


def demo() -> None:
    """Show what works so far, on tables made on the spot."""
    typer.echo(f"tamis {tamis.__version__}")
    typer.echo(
        "No table format is wired up yet: the sieve judges facts, but nothing reads them from a table."
    )
