"""What the processes and tasks of a trace_view.json are, in Kineto's categories."""

from __future__ import annotations

import re

# CANN numbers its processes (process id << 10) | (place << 5) | device. The place is the same in every trace.
PYTHON_GC, CANN, HARDWARE, COMMUNICATION, OVERLAP = 1, 7, 13, 15, 23
PLACES = {
    "Python GC": PYTHON_GC,
    "CANN": CANN,
    "Ascend Hardware": HARDWARE,
    "HCCL": COMMUNICATION,
    "Communication": COMMUNICATION,
    "Overlap Analysis": OVERLAP,
}

# Categories of spans that are no rows: parts of collectives and marks of events; what others computed from the rows.
TASK, OVERLAP_SPAN = "npu_task", "npu_overlap"

# Tasks that are kernels; others of a stream are copies, marks of events, and the parts that a collective is made of.
_KERNEL = re.compile(r"(KERNEL_)?(AI_?(CORE|VECTOR_CORE|VECTOR|VEC|V|C|CPU)|MIX_AI[CV]|DSA\w*|DVPP\w*)")
_COPY = frozenset({"PCIE_DMA_SQE", "SDMA_SQE", "MEMCPY_ASYNC"})
_FILL = frozenset({"MEMSET_ASYNC"})

SCOPE_ARGUMENT = "Scope"  # of ranges in folders that are written here, so that reading them tells ranges from ops
# Ranges of torch and of users have the category of ops, too; these are known by name.
_RANGES = ("ProfilerStep#", "Optimizer.", "enumerate(DataLoader)", "DistributedDataParallel.")

COPY_NAME = "memcpy direction"  # the argument that has the name of a copy or fill in folders that are written here
CALL_NAME = "Api"  # the argument that has the name of a call of the host, which CANN would write with its layer before it
MARK = "MSTX"  # the type of a task that marks a moment or a range of a stream, in folders that are written here

AI_CORES = frozenset({"AI_CORE", "AI_VECTOR_CORE"})  # units of kernels; mixes of both, AI CPUs and others are none

_NUMBERED = re.compile(r"(?:.*_)?([A-Za-z]\w*?)_\d+")  # trans_TransData_12, the twelfth of a process

_COLLECTIVE = re.compile(r"hcom_([A-Za-z]+)__([0-9a-z]+)_([0-9]+)_[0-9]+")


def process(host: int, place: int, device: int) -> int:
    """The id of one of CANN's processes."""
    return host << 10 | place << 5 | device


def place_of(process: int) -> int:
    """Which of CANN's processes a process id means; one of the constants, or another number."""
    return process >> 5 & 31


def host_process(process: int) -> int:
    """The process id of the operating system in one of CANN's."""
    return process >> 10


def device_of(process: int) -> int:
    """The device in one of CANN's process ids."""
    return process & 31


def task_category(task_type: str, name: str) -> str | None:
    """Kineto's category of a task on a stream, None if it is no work of its own."""
    if name.startswith("MEMCPY"):
        return "gpu_memcpy" if task_type in _COPY else None
    if name.startswith("MEMSET") or task_type in _FILL:
        return "gpu_memset"
    return "kernel" if _KERNEL.fullmatch(task_type) else None


def is_copy_name(name: object) -> bool:
    """Whether this is what PyTorch and this project call a copy or a fill."""
    return isinstance(name, str) and name.startswith(("Memcpy", "Memset"))


def host_category(category: str, name: str) -> str:
    """Kineto's category of a span of the Python process."""
    if category == "cpu_op":
        return "user_annotation" if name.startswith(_RANGES) else "cpu_op"
    if category in ("enqueue", "dequeue"):
        return "privateuse1_runtime"
    return category or "user_annotation"


def kernel_type(name: str) -> str:
    """The kind of op in a kernel's name, such as Relu of aclnnRelu_ReluAiCore_Relu and TransData of trans_TransData_12."""
    numbered = _NUMBERED.fullmatch(name)
    return numbered[1] if numbered else name.rpartition("_")[2] or name


def collective(name: str) -> tuple[str, int] | None:
    """What a collective does and its number in its group, from a name such as hcom_allReduce__586_0_1."""
    match = _COLLECTIVE.fullmatch(name)
    return (match[1].lower(), int(match[3])) if match and len(match[3]) < 19 else None
