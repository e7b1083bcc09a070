"""`Result` to JSON and back, and the JSON Schema that both sides can trust."""

from __future__ import annotations

from typing import Any

import msgspec

from grader.errors import GraderError
from grader.records import RESULT_SCHEMA, Result

_HINT = "give the result.json that `grader grade --out` or `grader batch` wrote, unchanged"


def to_json(result: Result) -> bytes:
    """Encode a result: indented, keys in the records' order, a newline at the end."""
    try:
        encoded = msgspec.json.encode(result)
    except UnicodeEncodeError:  # a file name that is not UTF-8 reaches Python as lone surrogates
        encoded = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(result)))
    return msgspec.json.format(encoded, indent=2) + b"\n"


def from_json(data: bytes) -> Result:
    """Decode what `to_json` wrote; `GraderError` that says what is wrong with anything else."""
    try:
        return msgspec.json.decode(data, type=Result)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GraderError(f"this is not a {RESULT_SCHEMA} file: {error}", _HINT) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a result, generated from the records."""
    (reference,), definitions = msgspec.json.schema_components([Result], ref_template="#/$defs/{name}")
    definitions["Result"]["required"] = ["schema", *definitions["Result"]["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": RESULT_SCHEMA,
        "title": "A graded submission",
        **reference,
        "$defs": definitions,
    }


def _without_surrogates(node: Any) -> Any:
    if isinstance(node, str):
        return node.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(node, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in node.items()}
    if isinstance(node, list | tuple):
        return [_without_surrogates(item) for item in node]
    return node
