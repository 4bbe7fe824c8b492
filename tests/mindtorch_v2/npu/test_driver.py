"""Finding, loading and calling CANN's libraries: where they are looked for, checked codes, missing symbols, lazy import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindtorch_v2._backends.errors import AcceleratorError
from mindtorch_v2._backends.npu import devices, driver, errors, launch, memory, operators, signatures


def test_importing_the_package_loads_no_npu_code() -> None:
    code = """if True:
        import sys, mindtorch_v2
        loaded = [name for name in sys.modules if name.startswith("mindtorch_v2._backends.npu")]
        print(loaded, "libascendcl" in open("/proc/self/maps").read())
    """
    shown = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True
    )
    assert shown.stdout.strip() == "[] False", shown.stderr


def test_folders_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDTORCH_NPU_LIBRARY", raising=False)
    monkeypatch.setenv("ASCEND_HOME_PATH", "/opt/cann")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", "/opt/toolkit")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/a::/opt/cann/lib64:/b")
    assert driver.library_folders() == [Path(p) for p in ("/opt/cann/lib64", "/opt/toolkit/lib64", "/a", "/b")]
    monkeypatch.setenv("MINDTORCH_NPU_LIBRARY", "/mine")
    assert driver.library_folders() == [Path("/mine")]


def test_nothing_found_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(errors.DriverNotFoundError, match=rf"libascendcl\.so was not found.*{tmp_path}.*ASCEND_HOME_PATH"):
        driver.Driver([tmp_path])
    with pytest.raises(errors.DriverNotFoundError, match="no variable names a folder"):
        driver.Driver([])


def test_a_broken_library_is_named(tmp_path: Path) -> None:
    (tmp_path / "libascendcl.so").write_text("no library")
    with pytest.raises(errors.DriverNotFoundError, match="libascendcl.so could not be loaded"):
        driver.Driver([tmp_path])


def test_every_row_has_known_types() -> None:
    for name, row in operators.OPERATORS.items():
        for word in row.words:
            assert word in signatures.TYPES or word in operators.KINDS.values(), (name, word)
    for functions in signatures.FUNCTIONS.values():
        for name, function in functions.items():
            for word in function.arguments.split():
                assert word.removeprefix(">") in signatures.TYPES, (name, word)


def test_every_row_is_in_the_libraries(npu: Any) -> None:
    wanted = [name for functions in signatures.FUNCTIONS.values() for name in functions] + list(operators.OPERATORS)
    assert [name for name in wanted if not npu.has(name)] == []


def test_calls_return_their_results(npu: Any) -> None:
    devices.activate(0)
    assert npu.call("aclrtGetDevice") == 0
    assert len(npu.call("aclrtGetVersion")) == 3
    unused, total = devices.memory_info(0)
    assert 0 < unused <= total
    assert devices.device_name(0).startswith("Ascend")


def test_contexts(npu: Any) -> None:
    devices.activate(0)
    default = npu.call("aclrtGetCurrentContext")
    made = npu.call("aclrtCreateContext", 0)
    assert npu.call("aclrtGetCurrentContext") == made != default
    npu.call("aclrtSetCurrentContext", default)
    npu.call("aclrtDestroyContext", made)
    assert npu.call("aclrtGetCurrentContext") == default


def test_a_failure_names_call_code_and_message(npu: Any) -> None:
    devices.activate(0)
    with pytest.raises(errors.NPUError) as caught:
        npu.call("aclrtFree", 12345)
    error = caught.value
    assert isinstance(error, AcceleratorError)
    assert (error.call, error.error_code) == ("aclrtFree", 107000)
    assert str(error).startswith("aclrtFree failed with 107000 (ACL_ERROR_RT_PARAM_INVALID): ")
    assert error.message and npu.recent_message() == ""  # asking cleared it


def test_set_device_checks_the_index(npu: Any) -> None:
    with pytest.raises(RuntimeError, match="Invalid device id 99: there are"):
        devices.set_device(99)


def test_an_operator_refuses_what_does_not_fit(npu: Any, on_device: Any, counter: Any) -> None:
    a, b = on_device(np.ones((3, 4), "f4")), on_device(np.ones((5,), "f4"))
    before = counter("descriptors"), counter("executors")
    with pytest.raises(errors.NPUError, match=r"aclnnAddGetWorkspaceSize failed with 161002 \(ACLNN_ERR_PARAM_INVALID\)"):
        launch.launch("Add", a, b, 1, a)
    with pytest.raises(TypeError, match="aclnnAdd takes 4 arguments, not 3"):
        launch.launch("Add", a, b, a)
    with pytest.raises(TypeError, match="a number, not str"):
        launch.launch("Add", a, a, "one", a)
    assert (counter("descriptors"), counter("executors")) == before


def test_data_types_that_do_not_exist(npu: Any) -> None:
    with pytest.raises(TypeError, match="cannot have the data type datetime64"):
        launch.dtype_code(np.dtype("M8[s]"))
    with pytest.raises(ValueError, match="negative strides"):
        launch.launch("InplaceZero", memory.empty((4,), np.dtype("f4"))[::-1])


def test_the_host_cannot_touch_device_memory(in_process: Any) -> None:
    shown = in_process("memory.empty((4,), np.dtype('f4'))[0]")
    assert shown.returncode == -11, shown.stderr


def test_another_thread_finds_its_device(in_process: Any) -> None:
    shown = in_process("""
        import threading
        found = []
        devices.set_device(1)
        def work():
            a = ones(2, 3)
            launch.launch("Add", a, a, 1, a)
            found.append((memory.block_of(a).device_index, float(values(a).sum())))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        found.append((memory.block_of(ones(1)).device_index, devices.current_device()))
        print(found)
    """)
    assert shown.stdout.strip() == "[(0, 12.0), (1, 1)]", shown.stderr


def test_a_missing_required_symbol_fails_the_load(in_process: Any, simulator_without: Any) -> None:
    library = simulator_without("aclrtMemcpyAsync")
    shown = in_process("print(devices.is_available(), driver.why_unavailable())", library=library)
    assert shown.stdout.startswith("False"), shown.stderr
    assert f"{library / 'libascendcl.so'} has no function aclrtMemcpyAsync" in shown.stdout


def test_a_missing_operator_fails_when_it_is_needed(in_process: Any, simulator_without: Any) -> None:
    library = simulator_without("aclnnMul")
    shown = in_process(
        """
        a = ones(2)
        launch.launch("Add", a, a, 1, a)
        print(driver.driver().has("Mul"), driver.driver().has("Add"), values(a))
        try:
            launch.launch("Mul", a, a, a)
        except errors.MissingSymbolError as error:
            print(error)
    """,
        library=library,
    )
    first, second = shown.stdout.splitlines()
    assert first == "False True [2. 2.]"
    assert f"{library / 'libopapi.so'} has no function aclnnMul" in second
