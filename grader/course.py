"""From folders to `Assignment`s: reads a manifest, resolves it, and names the key that is wrong."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import msgspec

from grader import cpp, inputs
from grader.errors import GraderError, UsageError
from grader.records import (
    Assignment,
    Case,
    CaseSpec,
    CheckSpec,
    DType,
    Entry,
    EntrySpec,
    HiddenManifest,
    Manifest,
    Parameter,
    Role,
    ScalarType,
)
from grader.resources import assignments_dir

_POINTER = re.compile(
    r"(?P<role>in|out|inout)\s+(?P<dtype>\w+)\s*\[(?P<dims>[^\[\]]*)\]\s*(?P<nullable>\?)?",
)
_SCALAR = re.compile(r"(?P<type>\w+)\s*(?:=\s*(?P<value>.+))?")
_T = TypeVar("_T")

_POINTER_FORM = "'in float32[N, d]' (in, out or inout; a dtype; dims; a last ? if it may be null)"
_SCALAR_FORM = "'int', 'float = 1/sqrt(d)' or 'stream'"


class ManifestError(GraderError):
    """A manifest that cannot be used: names the file, the key, and what was expected."""

    def __init__(self, path: Path, key: str, problem: str, hint: str = "") -> None:
        super().__init__(f"{path}: {key}: {problem}" if key else f"{path}: {problem}", hint)


def slugs() -> list[str]:
    """Return the assignments of the course in their order."""
    return sorted(folder.parent.name for folder in assignments_dir().glob("*/assignment.toml"))


def find(name: str) -> Path:
    """Return the folder of an assignment, given its slug, an unmistakable start of it, or a path.

    Raises `UsageError` naming the assignments there are.
    """
    path = Path(name)
    if (path / "assignment.toml").is_file():
        return path.resolve()
    known = slugs()
    matches = [slug for slug in known if slug == name] or [slug for slug in known if slug.startswith(name)]
    if len(matches) != 1 or not name:
        problem = "could mean " + " or ".join(matches) if name and matches else "is not in the course"
        raise UsageError(f"assignment '{name}' {problem}", "assignments: " + ", ".join(known))
    return assignments_dir() / matches[0]


def guess(path: Path, text: str) -> Path:
    """Return the assignment that a file answers: by its folder's name, else by the function it defines.

    Raises `UsageError` when that leaves a doubt.
    """
    known = slugs()
    for folder in path.absolute().parents:
        if folder.name in known:
            return assignments_dir() / folder.name
    if len(known) == 1:
        return assignments_dir() / known[0]
    code = cpp.mask(text)
    fitting = [
        slug
        for slug in known
        if all(re.search(rf"\b{entry.function}\b", code) for entry in load(find(slug)).entries)
    ]
    if len(fitting) == 1:
        return assignments_dir() / fitting[0]
    raise UsageError(
        f"cannot tell which assignment {path.name} answers", "name it with -a: " + ", ".join(fitting or known)
    )


def load(folder: Path, *, hidden: bool = False) -> Assignment:
    """Read and validate the assignment in `folder`; with `hidden`, its hidden cases too.

    Raises `ManifestError`, one line that names file, key and what was expected.
    """
    path = folder / "assignment.toml"
    manifest = _decode(path, Manifest)
    entries = tuple(_entry(path, index, spec) for index, spec in enumerate(manifest.entries))
    _require(bool(entries), path, "entries", "an assignment has at least one [[entries]] table")
    _require_unique(path, "entries", (entry.name for entry in entries))
    cases = [_case(path, index, spec, entries) for index, spec in enumerate(manifest.cases)]
    _require(bool(cases), path, "cases", "an assignment has at least one [[cases]] table")
    sources = [path, folder / "reference.py"]
    if hidden:
        hidden_path = _hidden_path(folder)
        specs = _decode(hidden_path, HiddenManifest).cases
        cases += [_case(hidden_path, index, spec, entries, hidden=True) for index, spec in enumerate(specs)]
        sources.append(hidden_path)
    _require_unique(path, "cases", (case.name for case in cases))
    checks = _checks(path, manifest.checks, cases)
    _require(manifest.tile >= 1, path, "tile", f"expected a positive integer, got {manifest.tile}")
    return Assignment(
        slug=folder.name,
        folder=folder,
        title=manifest.title,
        summary=manifest.summary,
        file=manifest.file,
        tile=manifest.tile,
        tolerance=manifest.tolerance,
        entries=entries,
        cases=tuple(cases),
        checks=checks,
        version=_version(sources),
    )


def entry_of(assignment: Assignment, case: Case) -> Entry:
    """Return the entry that `case` calls."""
    return next(entry for entry in assignment.entries if entry.name == case.entry)


def scalars_of(entry: Entry, case: Case) -> dict[str, bool | int | float]:
    """Return the value of every scalar parameter of `entry` in `case`, by name."""
    names = {**case.dims, **case.scalars}
    return {
        parameter.name: _scalar_value(parameter, names)
        for parameter in entry.parameters
        if parameter.role == "scalar"
    }


def reference_of(assignment: Assignment, entry: Entry) -> Callable[..., dict[str, Any]]:
    """Return the function of `reference.py` that computes what `entry` should have computed."""
    path = assignment.folder / "reference.py"
    namespace: dict[str, Any] = {"__name__": f"reference_{assignment.slug}", "__file__": str(path)}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    except (OSError, SyntaxError, ImportError, NameError) as error:
        raise GraderError(f"{path}: {error}", "the course author has to mend the reference") from error
    function = namespace.get(entry.reference)
    if not callable(function):
        raise GraderError(f"{path}: has no function '{entry.reference}' for the entry '{entry.name}'")
    return function  # type: ignore[no-any-return]


def known_checks() -> list[str]:
    """Return the names of the checks: one for each file in `grader/checks/`."""
    folder = Path(__file__).parent / "checks"
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


def _decode(path: Path, kind: type[_T]) -> _T:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ManifestError(path, "", "there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(path, "", str(error)) from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(path, "", f"not valid TOML: {error}") from None
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise _explained(path, raw, kind, error) from None


def _explained(path: Path, raw: Any, kind: type, error: msgspec.ValidationError) -> ManifestError:
    """Turn msgspec's "... - at `$.cases[3].dims`" into our own words, with the name of the table."""
    problem, _, at = str(error).partition(" - at `$")
    key = at.rstrip("`").lstrip(".").removeprefix("key in ")
    if match := re.fullmatch(r"(\w+)\[(\d+)\](.*)", key):
        name = raw[match[1]][int(match[2])].get("name") if isinstance(raw.get(match[1]), list) else None
        key = f"{match[1]}[{match[2]}]" + (f" ({name!r})" if isinstance(name, str) else "") + match[3]
    if match := re.fullmatch(r"Object contains unknown field `(.+)`", problem):
        known = ", ".join(_fields_at(kind, at.rstrip("`")))
        return ManifestError(path, key or match[1], f"unknown key '{match[1]}'; expected one of: {known}")
    if match := re.fullmatch(r"Object missing required field `(.+)`", problem):
        return ManifestError(path, key, f"the key '{match[1]}' is missing")
    return ManifestError(path, key, problem[0].lower() + problem[1:])


def _fields_at(kind: type, place: str) -> tuple[str, ...]:
    specs = {"entries": EntrySpec, "cases": CaseSpec, "checks": CheckSpec}
    match = re.match(r"\.(\w+)\[", place)
    if match and match[1] in specs:
        kind = specs[match[1]]
    elif place.startswith(".tolerance"):
        return ("arithmetic", "kappa", "atol", "rtol")
    return tuple(field.name for field in msgspec.structs.fields(kind))


def _require(condition: bool, path: Path, key: str, problem: str) -> None:
    if not condition:
        raise ManifestError(path, key, problem)


def _require_unique(path: Path, key: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        _require(name not in seen, path, key, f"the name '{name}' is used twice")
        seen.add(name)


def _entry(path: Path, index: int, spec: EntrySpec) -> Entry:
    key = f"entries[{index}] ({spec.name!r})"
    _require(
        re.fullmatch(r"[A-Za-z_]\w*", spec.function) is not None,
        path,
        f"{key}.function",
        f"expected the name of a C++ function, got '{spec.function}'",
    )
    parameters = tuple(
        _parameter(path, f"{key}.args[{position}]", text) for position, text in enumerate(spec.args)
    )
    _require_unique(path, f"{key}.args", (parameter.name for parameter in parameters))
    outputs = [parameter for parameter in parameters if parameter.role in ("out", "inout")]
    _require(bool(outputs), path, f"{key}.args", "expected at least one 'out' or 'inout' argument")
    return Entry(spec.name, spec.function, parameters, spec.reference or spec.name)


def _parameter(path: Path, key: str, text: str) -> Parameter:
    name, colon, kind = (part.strip() for part in text.partition(":"))
    if not colon or not name.isidentifier():
        raise ManifestError(path, key, f"expected 'name: kind', got '{text}'")
    if match := _POINTER.fullmatch(kind):
        dtypes = get_args(DType)
        if match["dtype"] not in dtypes:
            problem = f"unknown dtype '{match['dtype']}'; expected one of: {', '.join(dtypes)}"
            raise ManifestError(path, key, problem)
        dims = tuple(part.strip() for part in match["dims"].split(",") if part.strip())
        role, dtype = cast(Role, match["role"]), cast(DType, match["dtype"])
        return Parameter(name, role, dtype, dims, nullable=match["nullable"] is not None)
    if kind == "stream":
        return Parameter(name, "stream", "stream")
    match = _SCALAR.fullmatch(kind)
    if match and match["type"] in get_args(ScalarType):
        kind_ = cast(ScalarType, match["type"])
        return Parameter(name, "scalar", kind_, value=(match["value"] or name).strip())
    raise ManifestError(path, key, f"cannot read '{kind}'; expected {_POINTER_FORM}, or {_SCALAR_FORM}")


def _case(
    path: Path, index: int, spec: CaseSpec, entries: tuple[Entry, ...], *, hidden: bool = False
) -> Case:
    key = f"cases[{index}] ({spec.name!r})"
    entry_name = spec.entry or entries[0].name
    entry = next((entry for entry in entries if entry.name == entry_name), None)
    if entry is None:
        names = ", ".join(entry.name for entry in entries)
        raise ManifestError(path, f"{key}.entry", f"unknown entry '{entry_name}'; expected one of: {names}")
    _require(spec.points >= 0, path, f"{key}.points", f"expected zero or more, got {spec.points}")
    case = Case(
        name=spec.name,
        entry=entry.name,
        dims=spec.dims,
        inputs=spec.inputs,
        scalars=spec.scalars,
        seed=spec.seed,
        points=spec.points,
        hint=spec.hint,
        on=spec.on,
        hidden=hidden,
    )
    _require_resolvable(path, key, entry, case)
    _require_known_inputs(path, key, entry, case)
    return case


def _require_resolvable(path: Path, key: str, entry: Entry, case: Case) -> None:
    """Every dim and scalar of the entry has a value in this case, and the sizes make sense."""
    names = {**case.dims, **case.scalars}
    for parameter in entry.parameters:
        try:
            if parameter.role == "scalar":
                _scalar_value(parameter, names)
            elif parameter.role != "stream":
                shape = inputs.shape(parameter, case.dims)
                if any(extent < 0 for extent in shape):
                    raise GraderError(f"{shape} is not a shape")
        except GraderError as error:
            problem = f"'{parameter.name}' of entry '{entry.name}' does not resolve: {error.message}"
            raise ManifestError(path, f"{key}.dims", problem, error.hint) from None


def _require_known_inputs(path: Path, key: str, entry: Entry, case: Case) -> None:
    chosen = {"": case.inputs} if isinstance(case.inputs, str) else case.inputs
    arrays = {parameter.name: parameter for parameter in entry.parameters if parameter.dims}
    for array, distribution in chosen.items():
        place = f"{key}.inputs" + (f".{array}" if array else "")
        if array and array not in arrays:
            expected = ", ".join(arrays)
            raise ManifestError(path, place, f"no such argument; expected one of: {expected}")
        if distribution == "null" and array and arrays[array].nullable:
            continue
        if distribution not in inputs.DISTRIBUTIONS:
            known = ", ".join(sorted(inputs.DISTRIBUTIONS))
            problem = f"unknown distribution '{distribution}'; expected one of: {known}"
            raise ManifestError(path, place, problem)


def _checks(path: Path, specs: tuple[CheckSpec, ...], cases: list[Case]) -> tuple[CheckSpec, ...]:
    known, names = known_checks(), {case.name for case in cases}
    for index, spec in enumerate(specs):
        key = f"checks[{index}] ({spec.check!r})"
        if spec.check not in known:
            problem = f"unknown check '{spec.check}'; expected one of: {', '.join(known)}"
            raise ManifestError(path, f"{key}.check", problem)
        for name in spec.cases:
            _require(name in names, path, f"{key}.cases", f"there is no case named '{name}'")
        _require(spec.points >= 0, path, f"{key}.points", f"expected zero or more, got {spec.points}")
    _require_unique(path, "checks", (spec.check for spec in specs))
    return specs


def _scalar_value(parameter: Parameter, names: dict[str, bool | int | float]) -> bool | int | float:
    value = inputs.evaluate(parameter.value, names)
    return {"float": float, "double": float, "bool": bool}.get(parameter.dtype, int)(value)


def _hidden_path(folder: Path) -> Path:
    path = folder.parent.parent / "solutions" / folder.name / "hidden.toml"
    if not path.is_file():
        raise UsageError(
            f"no hidden cases for {folder.name}: {path} is missing",
            "hidden cases come with the instructors' solutions/ folder, beside assignments/",
        )
    return path


def _version(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:12]
