"""One mistake a line: a type checker finds each, and says what the comment says."""

from __future__ import annotations

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import Tensor, nn, optim
from mindtorch_v2.optim.lr_scheduler import StepLR
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.utils.data import DataLoader, TensorDataset


def mistakes(x: Tensor, model: nn.Linear, optimizer: optim.Optimizer) -> None:
    torch.ad(x)  # attr-defined
    torch.add(x)  # call-arg
    torch.add(x, "one")  # arg-type
    torch.softmax(x, "rows")  # call-overload
    torch.neg(x, x)  # call-arg
    torch.zeros("2", 3)  # call-overload
    torch.ones(2, dtype=torch.float23)  # attr-defined
    torch.cat(x)  # arg-type
    torch.linalg.qrr(x)  # attr-defined
    torch.special.erf("x")  # arg-type
    print(torch.max(x, dim=1).value)  # attr-defined
    torch.save()  # call-arg
    x.mull(x)  # attr-defined
    x.view("3")  # arg-type
    x.tolist(1)  # call-arg
    x.ndim = 3  # misc
    print(x @ 2)  # operator
    print(x + "2")  # operator
    print(x["a"])  # index
    F.liner(x, x)  # attr-defined
    F.linear(x)  # call-arg
    F.softmax(x, dim="last")  # arg-type
    F.relu(x, inplace="yes")  # arg-type
    nn.Linear("a", 2)  # arg-type
    nn.Linear(2)  # call-arg
    nn.Linear(2, 2, dtype="float32")  # arg-type
    nn.Linea(2, 2)  # attr-defined
    nn.Dropout(p="half")  # arg-type
    model.in_features = "two"  # assignment
    optim.SGD(model.parameters(), learning_rate=0.1)  # call-arg
    optim.Adamm(model.parameters())  # attr-defined
    StepLR(optimizer, step=2)  # call-arg
    DataLoader(TensorDataset(x), batch_sise=2)  # call-arg
    profile(record_shape=True)  # call-arg
    profile(with_stack="yes")  # arg-type
    schedule(wait=1, warmup=1)  # call-arg
    record_function(1)  # arg-type
    with profile() as prof:
        prof.stepp()  # attr-defined
        prof.key_averages().tables()  # attr-defined
