"""Pages of the site that are made from elsewhere: the files at the root, and the help of every command."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
FROM_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
ROLE = re.compile(r":(?:meth|class|func|mod|attr|data|exc):<code>")
SHIM = re.compile(r"https://[a-z.]+/iframe-worker/shim")
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not a file of docs/."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=_seen_from_docs((ROOT / name).read_text(encoding="utf-8"))))
    files.append(File.generated(config, "reference/command.md", content=command_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files at the root lead to their pages; links to code of the repository become its name alone."""
    for name, target in FROM_ROOT.items():
        markdown = markdown.replace(f"](../{name}", f"]({target}")
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Roles of docstrings (``:meth:``) say nothing to a reader of the site."""
    return ROLE.sub("<code>", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The search of pages that are opened as files takes our own script, not one from the network."""
    return SHIM.sub(get_relative_url("javascripts/frame-worker.js", page.url), output)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """The page of unknown addresses, as ``on_post_page``."""
    return SHIM.sub("javascripts/frame-worker.js", output)


def command_page() -> str:
    """The help of every command, as the program prints it."""
    import typer

    from discreet.cli import app

    group = typer.main.get_command(app)
    parts = ["# Command\n", _help_of(group, "discreet")]
    for name, command in sorted(group.commands.items()):
        parts += [f"## discreet {name}\n", _help_of(command, f"discreet {name}")]
    return "\n".join(parts)


def _help_of(command, name: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=100, max_content_width=100)
    return f"```text\n{command.get_help(context).rstrip()}\n```\n"


def _seen_from_docs(text: str) -> str:
    """The text of a file at the root with its links as they are from docs/."""

    def seen(match: re.Match[str]) -> str:
        target = match[2]
        target = FROM_ROOT.get(target, target.removeprefix("docs/"))
        return f"{match[1]}{target}{match[3] or ''})"

    return LINK.sub(seen, text)
