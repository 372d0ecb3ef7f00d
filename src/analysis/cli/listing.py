"""The list of commands without importing them: `specbook --help` would wait seconds for libraries it does not use."""

import ast
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any


def listed(module: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands and groups that a module registers on `app`, each with its whole help, from its source."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    helps = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr="Typer")) as call):
                helps[name] = _text(call, "help")
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_typer"), args=[ast.Name(id=name)]) as call):
                yield _text(call, "name"), helps[name]
            case ast.FunctionDef(decorator_list=decorators):
                for decorator in decorators:
                    if ast.unparse(decorator).startswith("app.command("):
                        yield _name(decorator, node), cleandoc(ast.get_docstring(node) or "")


def _name(decorator: ast.expr, function: ast.FunctionDef) -> str:
    given: list[Any] = decorator.args if isinstance(decorator, ast.Call) else []
    return str(given[0].value) if given else function.name.replace("_", "-")


def _text(call: ast.Call, keyword: str) -> str:
    return next((str(ast.literal_eval(one.value)) for one in call.keywords if one.arg == keyword), "")
