"""The store of built files: whole entries only, the longest unused go first, a full disk does no harm."""

import os

from grader import cache
from grader.emulator import toolchain


def test_an_entry_is_found_again_and_the_border_between_parts_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHGRADE_CACHE", str(tmp_path / "cache"))
    built = tmp_path / "built"
    built.write_bytes(b"content")
    address = cache.key("ab", "c")
    assert cache.get("kind", address) is None
    assert cache.put("kind", address, built).read_bytes() == b"content"
    assert cache.get("kind", address) is not None
    assert cache.get("kind", cache.key("a", "bc")) is None


def test_the_longest_unused_entries_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHGRADE_CACHE", str(tmp_path / "cache"))
    built = tmp_path / "built"
    built.write_bytes(b"x")
    for age, name in enumerate(["newest", "middle", "oldest"]):
        os.utime(cache.put("kind", name, built, keep=3), (1e9 - age, 1e9 - age))
    cache.put("kind", "another", built, keep=3)
    assert sorted(path.name for path in (tmp_path / "cache" / "kind").iterdir()) == [
        "another",
        "middle",
        "newest",
    ]


def test_without_a_writable_cache_the_built_file_itself_is_used(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_bytes(b"")
    monkeypatch.setenv("FLASHGRADE_CACHE", str(blocker / "inside"))
    built = tmp_path / "built"
    built.write_bytes(b"x")
    assert cache.put("kind", "name", built) == built
    assert cache.get("kind", "name") is None
    assert not cache.seen_before("name")


def test_a_precompiled_header_is_used_only_while_both_of_its_files_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHGRADE_CACHE", str(tmp_path / "cache"))
    compiler = toolchain.find()
    text = "#include <cmath>\n"
    _, first = toolchain.prepared(compiler, text, "fast")
    assert first
    assert toolchain.prepared(compiler, text, "fast")[1] == first
    for path in (tmp_path / "cache" / "preludes").glob("*.h"):
        path.unlink()
    assert toolchain.prepared(compiler, text, "fast")[1] == ()  # noted as seen
    assert toolchain.prepared(compiler, text, "fast")[1] == first  # worth building again


def test_another_set_of_includes_is_precompiled_only_when_it_comes_again(tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHGRADE_CACHE", str(tmp_path / "cache"))
    compiler = toolchain.find()
    toolchain.prepared(compiler, "", "fast")
    assert toolchain.prepared(compiler, "#include <cstdio>\n", "fast")[1] == ()
    assert toolchain.prepared(compiler, "#include <cstdio>\n", "fast")[1] != ()
