"""`intloom cache`: look at the cache and empty it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from .console import new_table
from .options import AsJson, CacheFolder, cache_at, terminal_of


def register(app: typer.Typer) -> None:
    """Adds the subcommand."""
    cache = typer.Typer(help="The cache of preprocessed models.")
    cache.command("list", help="List the entries.\n\nExample: [bold]intloom cache list --json[/bold]")(_list)
    cache.command("path", help="Print the cache's folder.\n\nExample: [bold]du -sh $(intloom cache path)[/bold]")(_path)
    cache.command("clear", help="Remove all entries.\n\nExample: [bold]intloom cache clear[/bold]")(_clear)
    app.add_typer(cache, name="cache")


def _list(context: typer.Context, cache: CacheFolder = None, as_json: AsJson = False) -> None:
    terminal = terminal_of(context)
    records = list(cache_at(cache).records())
    if as_json:
        terminal.json([asdict(r) for r in records])
        return
    table = new_table("entry", "step", "options", ">MB", ">s to make", "source")
    for r in records:
        options = " ".join(f"{k}={v}" for k, v in r.options.items())
        table.add_row(r.key[:12], r.step, options, f"{r.size / 1e6:.1f}", f"{r.seconds:.2f}", r.source[:12])
    terminal.table(table)


def _path(context: typer.Context, cache: CacheFolder = None) -> None:
    terminal_of(context).result(str(cache_at(cache).folder))


def _clear(context: typer.Context, cache: CacheFolder = None, as_json: AsJson = False) -> None:
    terminal = terminal_of(context)
    count, size = cache_at(cache).clear()
    if as_json:
        terminal.json({"entries": count, "bytes": size})
    else:
        terminal.say(f"{count} entries removed, {size / 1e6:.1f} MB freed")
