"""Pages of the site from docstrings: a hook of MkDocs."""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_overloads

import click
from labeldp_trainer import cli as trainer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from labeldp_compile.cli import main
from labeldp_compile.cli.export import export_command, load_target, target_modules
from labeldp_compile.mechanisms import all_mechanisms

PAGES = {
    "labeldp_compile": ("labeldp_compile",),
    "labeldp_verify": ("labeldp_verify",),
    "labeldp_learn": ("labeldp_learn",),
    "labeldp_runtime": (
        *("labeldp_runtime", "labeldp_runtime.engines.polars", "labeldp_runtime.engines.duckdb"),
        "labeldp_runtime.engines.spark",
    ),
}
_SECTION = re.compile(r"(Args|Attributes|Returns|Raises):")
_ITEM = re.compile(r"    (\w[\w, *]*): (.*)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each package."""
    for page, modules in PAGES.items():
        text = "\n".join(line for name in modules for line in module_page(name))
        files.append(File.generated(config, f"reference-{page}.md", content=f"# {page}\n\n{text}"))
    commands = "\n".join(commands_page())
    files.append(File.generated(config, "reference-commands.md", content=commands))
    mechanisms = "\n".join(mechanisms_page())
    files.append(File.generated(config, "reference-mechanisms.md", content=mechanisms))
    files.append(File.generated(config, "runtime.md", content=runtime_page()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links to the README of the runtime lead to its page here; drawings are part of the page."""
    text = markdown.replace("](../runtime/README.md", "](runtime.md")
    return re.sub(r"!\[(.*)\]\((images/\S+\.svg)\)", drawing, text)


def drawing(link: re.Match[str]) -> str:
    """The SVG itself, so that currentColor is the text colour of the page and not of a file."""
    svg = (Path(__file__).parents[1] / link[2]).read_text(encoding="utf-8")
    svg = re.sub(r"<style>.*</style>|\n", "", svg)
    return svg.replace('role="img"', f'role="img" aria-label="{html.escape(link[1])}"')


def runtime_page() -> str:
    """The README of the runtime, which is outside docs/, without links to what is not here."""
    text = (Path(__file__).parents[2] / "runtime" / "README.md").read_text(encoding="utf-8")
    return text.replace("[`examples`](examples)", "`runtime/examples`")


def commands_page() -> Iterator[str]:
    """The lines on all commands: the help of each, and a table of its options."""
    yield from ["# Options of the commands", "", "Made from the commands' own help."]
    with click.Context(main, info_name="labeldp") as root:
        for name in main.list_commands(root):
            command = getattr(trainer, f"{name}_command", None) or main.get_command(root, name)
            if name == "export":
                yield from command_lines(name, export_command, root)
                for target in target_modules():
                    yield from command_lines(f"{name} --to {target}", load_target(target), root)
            elif isinstance(command, click.Group):
                with click.Context(command, info_name=name, parent=root) as group:
                    for inner in command.list_commands(group):
                        yield from command_lines(f"{name} {inner}", command.commands[inner], group)
            elif command is not None:
                yield from command_lines(name, command, root)


def command_lines(name: str, command: click.Command, above: click.Context) -> Iterator[str]:
    """Heading, usage, help and options of one command."""
    with click.Context(command, info_name=name.rsplit(maxsplit=1)[-1], parent=above) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        yield from ["", f"## labeldp {name}", "", "```sh", f"labeldp {name} {usage}", "```", ""]
        text = inspect.cleandoc(command.help or "").replace("\b\n", "")
        yield from body(re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"``\g<0>``", text))
        records = [it.get_help_record(context) for it in command.get_params(context)]
    options = [record for record in records if record is not None and record[1]]
    yield from ["", "| option | |", "|---|---|"] if options else []
    for option, text in options:
        yield f"| <code>{cell(option)}</code> | {prose(cell(text))} |"


def cell(text: str) -> str:
    """Text for a cell of a table: one line, in which nothing is markup."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def mechanisms_page() -> Iterator[str]:
    """The lines on all mechanisms: what each is, how it is solved, and its options."""
    yield from ["# Options of the mechanisms", "", "Keys beside `kind` under `mechanism`."]
    for it in all_mechanisms():
        (kind,) = get_args(it.model_fields["kind"].annotation)
        yield from ["", f"## `{kind}`", "", prose(inspect.getdoc(it) or ""), ""]
        labels = "labels that are numbers" if it.needs_order else "labels of any kind"
        yield f"For {labels}; {it.method}; a {it.form} randomizer."
        options = {key: field for key, field in it.model_fields.items() if key != "kind"}
        yield from ["", "| option | default | |", "|---|---|---|"] if options else []
        for key, field in options.items():
            default = "needed" if field.is_required() else f"`{str(field.default).lower()}`"
            yield f"| `{key}` | {default} | {field.description or ''} |"


def module_page(name: str) -> Iterator[str]:
    """The lines on one module: what it is, its functions, its classes, its other names."""
    module = importlib.import_module(name)
    yield from ["", f"## {name}", ""] if "." in name else []
    yield from body(inspect.getdoc(module) or "")
    found = {key: getattr(module, key) for key in public_names(module)}
    functions = {key: it for key, it in found.items() if inspect.isfunction(it)}
    classes = {key: it for key, it in found.items() if inspect.isclass(it)}
    errors = {key: it for key, it in classes.items() if issubclass(it, Exception)}
    for key, it in functions.items():
        yield from entry(key, it, "##" if name in PAGES else "###")
    for key, it in classes.items():
        if key in errors:
            continue
        yield from entry(key, it, "##")
        for method in methods(it):
            yield from entry(f"{key}.{method}", getattr(it, method), "###")
    if errors:
        yield from ["", "## Errors", ""]
        for key, it in errors.items():
            yield f"* `{key}`: {prose((inspect.getdoc(it) or '').replace(chr(10), ' '))}"


def public_names(module: object) -> list[str]:
    """What it hands out: its list, or the functions that it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    own = inspect.getmembers(module, lambda it: getattr(it, "__module__", "") == module.__name__)
    return [name for name, it in own if inspect.isfunction(it) and name[0] != "_"]


def methods(it: type) -> Iterator[str]:
    """Those that it defines itself and documents, in the order of the source."""
    for name, member in vars(it).items():
        public = name[0] != "_" or name in ("__init__", "__call__")
        callable_ = inspect.isfunction(member) or isinstance(member, classmethod | property)
        if public and callable_ and getattr(getattr(it, name), "__doc__", None):
            wrapped = member.fget if isinstance(member, property) else getattr(it, name)
            if wrapped.__module__ == it.__module__:  # not what dataclasses write
                yield name


def entry(name: str, it: object, level: str) -> Iterator[str]:
    """Heading, signature and docstring."""
    yield from ["", f"{level} `{name}`", ""]
    if isinstance(it, property):
        it = it.fget
        yield from ["```python", f"{name}: {inspect.signature(it).return_annotation}", "```", ""]
    elif inspect.isfunction(it) or inspect.ismethod(it):
        called = name.removesuffix(".__init__").removesuffix(".__call__")
        each = [line for way in get_overloads(it) or [it] for line in signature(called, way)]
        yield from ["```python", *each, "```", ""]
    yield from body(inspect.getdoc(it) or "")


def signature(name: str, it: object) -> list[str]:
    """One line if it is short, one a parameter if not."""
    found = inspect.signature(it)
    parameters = [p for p in found.parameters.values() if p.name != "self"]
    stars = [p for p in parameters if p.kind is p.KEYWORD_ONLY][:1]
    words = [word for p in parameters for word in [*["*"] * (p in stars), argument(p)]]
    result = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    line = f"{name}({', '.join(words)}){result}"
    if len(line) <= 90:
        return [line]
    return [f"{name}(", *(f"    {word}," for word in words), f"){result}"]


def argument(parameter: inspect.Parameter) -> str:
    """With its type and default; a function as a default does nothing."""
    text = f"{parameter.name}: {parameter.annotation}"
    default = parameter.default
    if default is parameter.empty:
        return text
    return f"{text} = {'…' if callable(default) else repr(default)}"


def body(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: its sections become lists, its examples code."""
    code, section = False, None
    for line in docstring.splitlines():
        example = line.startswith(">>> ") or (code and bool(line))
        if example != code:
            yield "```" if code else "```pycon"
        code = example
        heading = _SECTION.fullmatch(line)
        item = None if section in (None, "Returns") else _ITEM.fullmatch(line)
        if heading or line[:1].strip():
            section = heading and heading[1]
        if code:
            yield line
        elif heading:
            yield from ["", f"**{heading[1]}**", ""]
        elif item:
            names = ", ".join(f"`{name.strip()}`" for name in item[1].split(","))
            yield f"* {names}: {prose(item[2])}"
        else:
            yield prose(line.strip() if section else line)
    if code:
        yield "```"


def prose(line: str) -> str:
    """Marks of a docstring as those of Markdown."""
    return re.sub(r"``(.+?)``", r"`\1`", line)
