"""Options from Python and from the environment, the help text, and _core._testing."""

import pytest

from ccompile import _core, config, debug
from tests.support import child


def test_values_have_their_types():
    assert config.get("unroll") == 16
    assert config.get("cache_size") == 1 << 30
    assert config.get("dump_dir") == ""
    assert config.options()["unroll"].callable and not config.options()["cache_dir"].callable


def test_set_and_override():
    with config.override(unroll=3, dump="ir:fuse", dump_dir="/tmp/ä"):
        assert config.get("unroll") == 3
        assert config.get("dump") == "ir:fuse"
        assert config.get("dump_dir") == "/tmp/ä"
    assert config.get("unroll") == 16 and config.get("dump") == config.get("dump_dir") == ""


def test_a_wrong_value_changes_nothing():
    with pytest.raises(ValueError, match="unroll: 'x' is not a whole number"):
        config.set("unroll", "x")
    with pytest.raises(ValueError, match="no option 'unrol'"), config.override(unroll=3, unrol=4):
        pass
    with pytest.raises(ValueError, match="no item 'x'"), config.override(unroll=3, logs="x"):
        pass
    with pytest.raises(ValueError, match="null"):
        config.set("dump_dir", "a\0b")
    assert config.get("unroll") == 16


def test_environment():
    code = "from ccompile import config; print(config.get('unroll'), config.get('side_limit'))"
    done = child(code, CCOMPILE_UNROLL="5", CCOMPILE_SIDE_LIMIT="x", PYTHONWARNINGS="default")
    assert done.stdout == "5 8\n"
    assert "ccompile ignores CCOMPILE_SIDE_LIMIT: 'x' is not a whole number" in done.stderr


def test_help_lists_every_switch():
    text = debug.describe()
    for option in config.options().values():
        assert f"  {option.name} " in text and option.env in text
    for rows in _core.switch_rows().values():
        assert all(f"  {item}" in text for item, _, _ in rows)


def test_dump_is_a_block():
    with debug.dump("tape,ir:cse", folder="out"):
        assert config.get("dump") == "tape,ir:cse" and config.get("dump_dir") == "out"
    with pytest.raises(ValueError, match="no item 'tapes'"):
        debug.dump("tapes").__enter__()
    assert config.get("dump") == ""


def test_every_failed_allocation_is_a_memory_error():
    with config.override(stress="snap,exit:3", logs="all"):
        text = config.get("logs")
        for n in range(100):
            _core._testing.fail_alloc(n)
            try:
                got = config.get("logs")
            except MemoryError:
                continue
            finally:
                fired = _core._testing.fail_alloc(-1)
            assert got == text and not fired
            break
        assert n > 0 and config.get("logs") == text


@pytest.mark.leaks
def test_no_leak():
    config.options()
    _core.switch_rows()
    with config.override(dump="all"):
        config.get("dump")
    with pytest.raises(ValueError):
        config.set("dump", "x")
