"""The global names of generated entries: all declared, filled by install() alone, and an error before that."""

from __future__ import annotations

import ast
import builtins
import dis
import importlib.util
from pathlib import Path
from types import CodeType, ModuleType

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.func
from mindtorch_v2._dispatch import entry_globals, registry
from mindtorch_v2._dispatch.entry_codegen import entry_source


def _global_names(code: CodeType) -> set[str]:
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "STORE_GLOBAL")}
    return names.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _fresh_module() -> ModuleType:
    """The module as it is before any other has installed something."""
    spec = importlib.util.spec_from_file_location("mindtorch_v2._dispatch._fresh_entry_globals", entry_globals.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_global_name_of_every_entry_is_declared():
    sources = {entry_source(spec) for packet in registry.packets.values() for spec in packet}
    used = set().union(*(_global_names(compile(source, "<entry>", "exec")) for source in sources))
    assert used - set(dir(builtins)) <= set(entry_globals.__all__)


def test_entries_run_in_this_module():
    torch.neg(torch.ones(1))
    assert torch.neg.__globals__ is vars(entry_globals)


def test_after_import_every_name_is_installed():
    left = [name for name in entry_globals.__all__ if isinstance(getattr(entry_globals, name), entry_globals._NotInstalled)]
    assert not left


def test_install_refuses_unknown_names_and_then_installs_none():
    before = entry_globals.run_modes
    with pytest.raises(AttributeError, match=r"declares no function named run_mode, watch$"):
        entry_globals.install(run_modes=len, watch=len, run_mode=len)
    assert entry_globals.run_modes is before


@pytest.mark.parametrize("name", ["observers_active", "current", "install", "Tensor"])
def test_install_is_for_functions_of_other_modules(name):
    with pytest.raises(AttributeError, match=name):
        entry_globals.install(**{name: len})


def test_a_name_that_is_not_installed_says_so_when_it_is_called():
    fresh = _fresh_module()
    with pytest.raises(RuntimeError, match=r"entry_globals\.record_node was called before a module installed it"):
        fresh.record_node(None, (), None)
    fresh.install(record_node=lambda op, args, result: (op, args, result))
    assert fresh.record_node(None, (), 3) == (None, (), 3)


def test_a_name_that_is_not_declared_is_no_attribute():
    with pytest.raises(AttributeError, match="run_mode"):
        _ = entry_globals.run_mode


def test_modules_assign_only_what_changes_at_run_time():
    """Everything else goes through install(), which knows the names."""
    assigned = set()
    for path in Path(torch.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                assigned |= {
                    (path.name, part.attr)
                    for part in parts
                    if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "entry_globals"
                }
    assert assigned == {("observer.py", "observers_active"), ("observer.py", "current")}
