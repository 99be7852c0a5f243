"""What mkdocs is told by this project: pages made from the code, links out of docs/, and no assets from other hosts.

mkdocs calls the functions whose names begin with `on_` (its "hooks"); `make docs` builds the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from reference import settings_table
from typer.main import get_command

from rte import registry
from rte.config import SECTIONS

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
FOREIGN = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""", re.IGNORECASE)
"""What a browser would fetch from another host."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the folders of pages that the navigation names."""
    docs = Path(config.docs_dir)
    for entry in _entries(config.nav):
        for title, value in entry.items():
            if isinstance(value, str) and (docs / value).is_dir():
                pages = sorted(path.relative_to(docs).as_posix() for path in (docs / value).glob("*.md"))
                entry[title] = sorted(pages, key=lambda page: not page.endswith(("README.md", "index.md")))
    return config


def _entries(nav: Any) -> Iterator[dict[str, Any]]:
    for entry in nav or []:
        if isinstance(entry, dict):
            yield entry
            for value in entry.values():
                yield from _entries(value if isinstance(value, list) else [])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    from mkdocs.structure.files import File

    for name, content in (("commands", commands()), ("settings", settings())):
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files outside docs/, such as sources, become their names: the site does not hold them."""
    docs = Path(config.docs_dir).resolve()
    here = (docs / page.file.src_uri).parent

    def replace(match: re.Match[str]) -> str:
        target = (here / match[2].split("#")[0]).resolve()
        if target.is_relative_to(docs):
            return match[0]
        return f"`{target.relative_to(docs.parent).as_posix()}`" if match[1].startswith(("src/", "`")) else match[1]

    return LINK.sub(replace, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would fetch anything from another host."""
    from mkdocs.exceptions import PluginError

    for path in Path(config.site_dir).rglob("*.html"):
        if found := FOREIGN.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path.relative_to(config.site_dir)} fetches from another host: {found[0]}")


# ---- pages made from the code


def commands() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    from rte.cli import app

    parts = ["# Commands", "", "Made from the code; `rte COMMAND --help` prints the same.", ""]
    for name, command in _commands(get_command(app), "rte"):
        parts += [f"## {name}", "", (command.help or "").strip(), ""]
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            parts += ["| argument or option | meaning |", "| --- | --- |", *rows, ""]
        examples = [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("rte ")]
        if examples:
            parts += ["```sh", *examples, "```", ""]
    return "\n".join(parts)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for key, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}", command


def _row(parameter: click.Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    if parameter.param_type_name == "argument":
        names = f"`{parameter.name}`"
    text = str(getattr(parameter, "help", None) or "").replace("|", "\\|").replace("<", "&lt;")
    return f"| {names} | {text} |"


def settings() -> str:
    """Every setting of a run, by section."""
    parts = [
        "# Settings",
        "",
        "Each is given as `--set section.key=value`, in a preset, or in Python. Made from the",
        "",
    ]
    parts[-2] += " code. Those of a method are on its page."
    parts.append("")
    for section, model in SECTIONS.items():
        parts += [f"## {section}", "", settings_table(model), ""]
    for name in registry.datasets():
        model = registry.dataset(name).Config
        if model.model_fields:
            parts += [f"## data, for {name}", "", settings_table(model), ""]
    return "\n".join(parts)
