"""CANN's libraries: where they are, loading them, and calling their functions with checked return codes."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import DriverNotFoundError, MissingSymbolError, NPUError, failure
from .operators import OPERATORS
from .signatures import FUNCTIONS, LIBRARIES, TYPES, Function

_ALREADY_INITIALIZED = 100002


def library_folders() -> list[Path]:
    """Where CANN's libraries are looked for, best first. MINDTORCH_NPU_LIBRARY names the only folder outright."""
    outright = os.environ.get("MINDTORCH_NPU_LIBRARY")
    if outright:
        return [Path(outright)]
    folders = [Path(home) / "lib64" for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME") if (home := os.environ.get(name))]
    folders += [Path(entry) for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    return list(dict.fromkeys(folders))


def _find(library: str, folders: list[Path]) -> Path:
    for folder in folders:
        if (folder / library).is_file():
            return folder / library
    looked = ", ".join(map(str, folders)) or "nowhere, since no variable names a folder"
    raise DriverNotFoundError(
        f"CANN's {library} was not found. Looked in: {looked}. Set ASCEND_HOME_PATH (CANN's set_env.sh does) or "
        "MINDTORCH_NPU_LIBRARY."
    )


class Driver:
    """CANN's libraries, loaded. `call(name, ...)` runs a function of the table and returns its results."""

    def __init__(self, folders: list[Path]) -> None:
        self.paths: dict[str, Path] = {}
        self._libraries: dict[str, ctypes.CDLL] = {}
        self._calls: dict[str, Callable[..., Any]] = {}
        self._phases: dict[str, tuple[Any, Any]] = {}
        for name in LIBRARIES:
            path = self.paths[name] = _find(name, folders)
            try:
                self._libraries[name] = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                raise DriverNotFoundError(f"CANN's {path} could not be loaded: {error}") from error
        for library, functions in FUNCTIONS.items():
            for name, function in functions.items():
                if function.required:
                    self._calls[name] = self._checked(library, name, function)

    # ------------------------------------------------------------------ symbols

    def has(self, name: str) -> bool:
        """Whether the libraries have a function of the tables, or (`Add`) both phases of an operator."""
        if name in OPERATORS:
            library = self._libraries["libopapi.so"]
            return hasattr(library, f"aclnn{name}") and hasattr(library, f"aclnn{name}GetWorkspaceSize")
        return hasattr(self._libraries[_library_of(name)], name)

    def _symbol(self, library: str, name: str) -> Any:
        try:
            return self._libraries[library][name]
        except AttributeError:
            raise MissingSymbolError(
                f"{self.paths[library]} has no function {name}: it belongs to another version of CANN than 8.1, "
                "whose interface this binding follows"
            ) from None

    def _checked(self, library: str, name: str, function: Function) -> Callable[..., Any]:
        """A Python function that takes the arguments, checks the status and returns the results."""
        symbol = self._symbol(library, name)
        words = function.arguments.split()
        outputs: list[Any] = [TYPES[word[1:]] for word in words if word[0] == ">"]
        positions = [i for i, word in enumerate(words) if word[0] == ">"]
        symbol.argtypes = [ctypes.c_void_p if word[0] == ">" else TYPES[word] for word in words]
        symbol.restype = {"status": ctypes.c_int32, "text": ctypes.c_char_p, "handle": ctypes.c_void_p}[function.returns]

        if function.returns == "text":
            return lambda: (symbol() or b"").decode(errors="replace")
        if function.returns == "handle":

            def create(*arguments: Any) -> int:
                handle = symbol(*arguments)
                if not handle:
                    raise NPUError(name, 0, self.recent_message())
                return handle

            return create

        def run(*arguments: Any) -> None:
            code = symbol(*arguments)
            if code:
                raise failure(name, code, self.recent_message())

        if not outputs:
            return run

        def run_for_results(*arguments: Any) -> Any:
            results = [kind() for kind in outputs]
            every = list(arguments)
            for position, result in zip(positions, results, strict=True):
                every.insert(position, ctypes.byref(result))
            run(*every)
            return results[0].value if len(results) == 1 else tuple(result.value for result in results)

        return run_for_results

    # ------------------------------------------------------------------ calls

    def call(self, name: str, *arguments: Any) -> Any:
        """Run a runtime function; its results are returned, a failure is raised."""
        function = self._calls.get(name)
        if function is None:
            library = _library_of(name)
            function = self._calls[name] = self._checked(library, name, FUNCTIONS[library][name])
        return function(*arguments)

    def recent_message(self) -> str:
        """CANN's message about the last failure of this thread; reading clears it."""
        return self._calls["aclGetRecentErrMsg"]().strip()

    def phases(self, operator: str) -> tuple[Any, Any]:
        """The two functions of an operator: `aclnn<operator>GetWorkspaceSize` and `aclnn<operator>`."""
        functions = self._phases.get(operator)
        if functions is None:
            words = OPERATORS[operator].words
            plan = self._symbol("libopapi.so", f"aclnn{operator}GetWorkspaceSize")
            launch = self._symbol("libopapi.so", f"aclnn{operator}")
            plan.argtypes = [TYPES.get(word, ctypes.c_void_p) for word in words] + [ctypes.c_void_p, ctypes.c_void_p]
            launch.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
            plan.restype = launch.restype = ctypes.c_int32
            functions = self._phases[operator] = (plan, launch)
        return functions


def _library_of(name: str) -> str:
    return next(library for library, functions in FUNCTIONS.items() if name in functions)


_lock = threading.Lock()
_driver: Driver | None = None
_reason: Exception | None = None


def driver() -> Driver:
    """The driver, loaded and started at the first call. Raises DriverNotFoundError or MissingSymbolError without one."""
    global _driver, _reason  # noqa: PLW0603  read at every launch, where a module variable is cheapest
    if _driver is not None:
        return _driver
    with _lock:
        if _driver is None:
            if _reason is not None:
                raise _reason.with_traceback(None)
            try:
                loaded = Driver(library_folders())
                _start(loaded)
            except (DriverNotFoundError, MissingSymbolError, NPUError) as error:
                _reason = error
                raise
            _driver = loaded
    return _driver


def loaded_driver() -> Driver | None:
    """The driver if it is loaded: for finalizers, which must not load one."""
    return _driver


def _start(loaded: Driver) -> None:
    try:
        loaded.call("aclInit", None)
    except NPUError as error:
        if error.error_code != _ALREADY_INITIALIZED:  # by another library of this process, which also ends it
            raise
    else:
        atexit.register(_end, loaded)


def _end(loaded: Driver) -> None:
    with suppress(NPUError):  # the process ends, and CANN's own exit handler may have been first
        loaded.call("aclFinalize")


def why_unavailable() -> str | None:
    """Why no Ascend device can be used, or None if one can."""
    try:
        count = driver().call("aclrtGetDeviceCount")
    except (DriverNotFoundError, MissingSymbolError, NPUError) as error:
        return str(error)
    return None if count else "CANN reports no device"
