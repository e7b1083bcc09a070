"""The layout of the code: imports run one way, and nothing slow is imported before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import grader

PACKAGE = Path(grader.__file__).parent

# Lowest first. A module may import from its own layer's left and from the layers before it.
LAYERS = [
    ["errors", "records"],
    ["cpp", "resources", "cache", "numerics", "patterns"],
    ["inputs"],
    ["compare", "sandbox", "submission", "course"],
    ["emulator", "compiler_messages", "trampoline", "jobs"],
    ["devices"],
    ["checks", "score", "report", "authoring", "doctor"],
    ["pipeline"],
    ["cli"],
]
STANDALONE = {"runner"}  # a script of its own: imports nothing of the grader


def rank(name):
    return next(index for index, layer in enumerate(LAYERS) if name in layer)


def imports(path):
    """Yield every module of the grader that a file imports, late imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "grader":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("grader."))


def test_nothing_imports_upwards():
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        own = relative.parts[0].removesuffix(".py")
        if own in ("__init__", "__main__", "_data"):
            continue
        imported = {name for name in imports(path) if not name.startswith("__")} - {own}
        if own in STANDALONE:
            assert not imported, f"{relative} must not import {imported}"
            continue
        upwards = {name for name in imported if rank(name) > rank(own)}
        assert not upwards, f"{relative} imports upwards: {upwards}"


def test_modules_of_one_layer_do_not_import_in_a_circle():
    graph = {}
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        graph.setdefault(own, set()).update(name for name in imports(path) if name != own)

    def reaches(start, goal, seen):
        for name in graph.get(start, ()):
            if name == goal or (name not in seen and reaches(name, goal, seen | {name})):
                return True
        return False

    circles = [name for name in graph if not name.startswith("__") and reaches(name, name, set())]
    assert not circles


def test_the_help_page_needs_no_numpy_and_no_jinja():
    slow = {"numpy", "jinja2", "matplotlib", "msgspec"}
    code = f"import sys, grader.cli; print(sorted({slow} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
