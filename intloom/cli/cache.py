"""`intloom cache`: list and clear the cache."""

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from intloom.cli.console import Terminal, new_table
from intloom.cli.options import CacheFolder, subcommand
from intloom.common.cache.housekeeping import Item, clear, items
from intloom.common.cache.store import Kind
from intloom.common.cache_folder import cache_folder
from intloom.common.errors import UsageError

_CLEAR_HELP = """Remove entries. Entries that another process creates or uses are kept.

Examples:

[bold]intloom cache clear[/bold]

[bold]intloom cache clear --kind simulator --kind result[/bold]
"""
_Kinds = Annotated[list[Kind] | None, typer.Option("--kind", help="Only entries of this kind. Repeatable.")]


def _folder(chosen: Path | None) -> Path:
    folder = chosen or cache_folder()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"the cache must be a folder, not the file {folder}; give another path with --cache")
    return folder


@subcommand("cache list", "List the entries.\n\nExample: [bold]intloom cache list --json[/bold]")
def _list(terminal: Terminal, kind: _Kinds = None, cache: CacheFolder = None) -> None:
    chosen = [i for i in items(_folder(cache)) if not kind or i.kind in kind]
    terminal.give([{**vars(i), "path": str(i.path)} for i in chosen], lambda: _show(terminal, chosen))


def _show(terminal: Terminal, chosen: list[Item]) -> None:
    table = new_table("kind", "entry", ">MB", "last used", "what")
    for i in chosen:
        table.add_row(i.kind, i.name, f"{i.size / 1e6:.2f}", _time(i), i.detail)
    if chosen:
        terminal.table(table)
    counts = Counter(i.kind for i in chosen)
    sizes = {k: sum(i.size for i in chosen if i.kind is k) for k in counts}
    parts = [f"{n} {k if n == 1 else k.plural} {sizes[k] / 1e6:.1f} MB" for k, n in counts.items()]
    terminal.say(f"{', '.join(parts) or 'nothing'}; {sum(sizes.values()) / 1e6:.1f} MB in total")


def _time(item: Item) -> str:
    return datetime.fromtimestamp(item.used, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


@subcommand("cache path", "Print the path of the cache folder.\n\nExample: [bold]du -sh $(intloom cache path)[/bold]")
def _path(terminal: Terminal, cache: CacheFolder = None) -> None:
    folder = str(_folder(cache))
    terminal.give({"path": folder}, lambda: terminal.result(folder))


@subcommand("cache clear", _CLEAR_HELP)
def _clear(terminal: Terminal, kind: _Kinds = None, cache: CacheFolder = None) -> None:
    done = clear(_folder(cache), frozenset(kind or Kind))
    kept = f"; {done.in_use} in use by another process were kept" if done.in_use else ""
    terminal.give(
        asdict(done), lambda: terminal.say(f"{done.entries} entries removed, {done.bytes / 1e6:.1f} MB freed{kept}")
    )
