"""Record the public names of torch, module by module: `python tools/torch_names.py names.json`, with torch's interpreter.

`tests/mindtorch_v2/package/test_names.py` compares what this package has with `recorded_names.json`. A module's names are those
of its `__all__`; without one, what it defines or offers of torch: not the modules of other packages, and not what it imported
from them. Names with a leading underscore are left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import typing
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = """
torch accelerator amp autograd autograd.forward_ad autograd.function autograd.functional autograd.grad_mode
autograd.gradcheck autograd.graph autograd.profiler autograd.variable backends backends.cpu backends.cuda backends.cudnn
backends.mkl backends.mkldnn backends.mps backends.nnpack backends.openmp backends.opt_einsum backends.quantized
backends.xnnpack compiler cpu cpu.amp cuda cuda.amp cuda.graphs cuda.memory cuda.nvtx cuda.random cuda.streams
distributions distributions.constraints distributions.transforms distributions.kl distributions.utils export fft func
functional futures fx fx.graph fx.graph_module fx.interpreter fx.node fx.proxy fx.subgraph_rewriter hub jit library
linalg masked mps mtia multiprocessing nested nn nn.attention nn.attention.bias nn.attention.flex_attention
nn.functional nn.init nn.modules nn.modules.module nn.parallel nn.parameter nn.utils nn.utils.clip_grad
nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless onnx optim
optim.lr_scheduler optim.optimizer optim.swa_utils overrides profiler quasirandom random return_types serialization
signal signal.windows sparse special storage testing torch_version types utils utils._pytree utils._python_dispatch
utils.benchmark utils.checkpoint utils.collect_env utils.data utils.data.dataloader utils.data.dataset
utils.data.datapipes.iter utils.data.datapipes.map utils.data.distributed utils.data.sampler utils.dlpack
utils.flop_counter utils.hooks utils.model_zoo utils.weak version xpu
""".split()  # noqa: SIM905  a list would be a hundred lines
CLASSES = """
Generator Size Tensor TypedStorage UntypedStorage autograd.Function cuda.Event cuda.Stream device dtype finfo iinfo nn.Module
optim.Optimizer utils.data.DataLoader
""".split()  # noqa: SIM905


def _is_torchs(value: Any) -> bool:
    """Whether torch made a value, as far as it says so; plain values count as torch's."""
    if isinstance(value, ModuleType):
        return value.__name__.startswith("torch.")
    if isinstance(value, typing.TypeVar | typing.ParamSpec) or value is typing.TYPE_CHECKING:
        return False
    home = getattr(value, "__module__", None)
    top = home.partition(".")[0] if isinstance(home, str) else "torch"
    return top == "torch" or not (top in sys.stdlib_module_names or top in ("numpy", "typing_extensions", "packaging"))


def names_of(module: ModuleType) -> list[str]:
    """A module's public names, sorted."""
    listed = getattr(module, "__all__", None)
    if module.__name__ == "torch" or listed is None:
        listed = [*(listed or ()), *(name for name in dir(module) if _is_torchs(getattr(module, name)))]
    # `m` is what modules of torch.backends wrap themselves in; notes are parts of docstrings.
    return sorted({name for name in listed if not name.startswith("_") and name != "m" and not name.endswith("_notes")})


def record() -> dict[str, list[str]]:
    """Names by module and by class, as the torch of this interpreter has them."""
    torch = importlib.import_module("torch")
    modules = {name: "torch" if name == "torch" else f"torch.{name}" for name in MODULES}
    # All before the first is asked: importing a module makes it a name of its package.
    for path in modules.values():
        importlib.import_module(path)
    names = {name: names_of(importlib.import_module(path)) for name, path in modules.items()}
    for path in CLASSES:
        value: Any = torch
        for part in path.split("."):
            value = getattr(value, part)
        names[path] = sorted(name for name in dir(value) if not name.startswith("_"))
    return names


def main() -> None:
    """Write the names to the file that the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = {name: " ".join(names) for name, names in record().items()}
    parser.parse_args().path.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
