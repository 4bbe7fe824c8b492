"""Figures of a test, compared with those that real torch gave, or written down for that."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import numpy as np

# Of a long tensor: this many elements, spread evenly, beside its shape, mean and mean size.
SAMPLES = 8


def digest(value: Any) -> Any:
    """What is kept of a value: tensors as shape, dtype, means and a few elements; containers element by element."""
    if hasattr(value, "detach"):
        return _digest_tensor(value)
    if isinstance(value, np.ndarray):
        return _digest_array(value)
    if isinstance(value, dict):
        return {str(key): digest(element) for key, element in value.items()}
    if isinstance(value, (list, tuple)):
        return [digest(element) for element in value]
    if isinstance(value, (float, np.floating)):
        return _short(value)
    if isinstance(value, np.integer):
        return int(value)
    return value


def _digest_tensor(tensor: Any) -> dict[str, Any]:
    kind = str(tensor.dtype)
    tensor = tensor.detach().cpu()
    if kind in ("torch.bfloat16", "torch.float16"):
        tensor = tensor.float()
    return {**_digest_array(tensor.resolve_conj().numpy()), "dtype": kind}


def _digest_array(array: np.ndarray) -> dict[str, Any]:
    kept: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], -1)
    flat = array.reshape(-1)
    if flat.size:
        chosen = flat if flat.size <= SAMPLES else flat[np.linspace(0, flat.size - 1, SAMPLES).astype(int)]
        kept["values"] = [_short(element) for element in chosen.tolist()]
    if flat.size > SAMPLES:
        exact = flat.astype(np.float64)
        kept["mean"], kept["size"] = _short(exact.mean()), _short(np.abs(exact).mean())
    return kept


def _short(number: Any) -> Any:
    return float(f"{number:.7g}") if isinstance(number, (float, np.floating)) else number


def difference(new: Any, old: Any, tolerance: float, path: str = "") -> str | None:
    """Where two digests differ by more than `tolerance`, relative to the size of what is compared; None if nowhere."""
    if isinstance(old, dict):
        if not isinstance(new, dict) or set(new) != set(old):
            return f"{path}: {new!r}, torch has {old!r}"
        # Elements of a tensor are as exact as its elements are large.
        scale = max(tolerance, tolerance * float(old["size"])) if isinstance(old.get("size"), float) else tolerance
        return next((found for key in old if (found := difference(new[key], old[key], scale, f"{path}.{key}"))), None)
    if isinstance(old, list):
        if not isinstance(new, list) or len(new) != len(old):
            return f"{path}: {new!r}, torch has {old!r}"
        pairs = enumerate(zip(new, old, strict=True))
        return next((found for i, (a, b) in pairs if (found := difference(a, b, tolerance, f"{path}[{i}]"))), None)
    numbers = (int, float)
    if isinstance(old, numbers) and isinstance(new, numbers) and not isinstance(old, bool) and not isinstance(new, bool):
        if np.isclose(new, old, rtol=tolerance, atol=tolerance, equal_nan=True):
            return None
    elif new == old:
        return None
    return f"{path}: {new!r}, torch has {old!r}"


class Figures:
    """Figures of one test in a file that holds those of many."""

    def __init__(self, file: Path, test: str, recording: bool) -> None:
        self._file, self._test, self._recording = file, test, recording
        self._new: dict[str, Any] = {}
        self._old: dict[str, Any] = {} if recording else json.loads(file.read_text()).get(test, {})

    def check(self, name: str, value: Any, tolerance: float = 1e-4) -> None:
        """Fail unless `value` is what torch gave, to `tolerance`; keep it while figures are recorded."""
        # Through JSON, so that tuples and NumPy's numbers are what they are in the file.
        new = json.loads(json.dumps(digest(value)))
        if self._recording:
            self._new[name] = new
            return
        assert name in self._old, f"{self._test}: torch's figure {name!r} is not recorded"
        found = difference(new, self._old[name], tolerance, name)
        assert found is None, found

    def close(self) -> None:
        """Write recorded figures to their file."""
        if not self._new:
            return
        with self._file.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # tests run in several processes
            file.seek(0)
            kept = json.loads(file.read() or "{}")
            kept[self._test] = self._new
            lines = ",\n".join(f"{json.dumps(test)}: {json.dumps(kept[test])}" for test in sorted(kept))
            file.truncate(0)
            file.write("{\n" + lines + "\n}\n")
