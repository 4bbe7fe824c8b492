"""CANN's runtime functions as data: which library has them, their arguments in order, and the values of CANN's enums.

Followed: the headers acl/acl.h, acl/acl_base.h, acl/acl_rt.h and aclnn/acl_meta.h of CANN 8.1.RC1 (interface version
1.13.0). A word is a C type; `>` before it marks a pointer to a result, which a call returns instead of taking it.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

TYPES: dict[str, object] = {
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
    "int8": ctypes.c_int8,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "size": ctypes.c_size_t,
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "dtype": ctypes.c_int32,  # aclDataType
}


class Function(NamedTuple):
    """A function: argument words, what it returns ("status" is checked), and whether loading fails without it."""

    arguments: str
    returns: str = "status"
    required: bool = True


LIBRARIES = ("libascendcl.so", "libnnopbase.so", "libopapi.so")
"""In the order in which they are loaded: the later ones use the earlier."""

FUNCTIONS: dict[str, dict[str, Function]] = {
    "libascendcl.so": {
        "aclInit": Function("text"),
        "aclFinalize": Function(""),
        "aclGetRecentErrMsg": Function("", "text"),
        "aclrtGetVersion": Function(">int32 >int32 >int32", required=False),
        "aclrtGetSocName": Function("", "text", required=False),
        "aclrtGetDeviceCount": Function(">uint32"),
        "aclrtSetDevice": Function("int32"),
        "aclrtGetDevice": Function(">int32"),
        "aclrtResetDevice": Function("int32"),
        "aclrtSynchronizeDevice": Function(""),
        "aclrtSynchronizeDeviceWithTimeout": Function("int32", required=False),
        "aclrtCreateContext": Function(">pointer int32", required=False),
        "aclrtDestroyContext": Function("pointer", required=False),
        "aclrtSetCurrentContext": Function("pointer", required=False),
        "aclrtGetCurrentContext": Function(">pointer", required=False),
        "aclrtMalloc": Function(">pointer size int32"),
        "aclrtFree": Function("pointer"),
        "aclrtMallocHost": Function(">pointer size"),
        "aclrtFreeHost": Function("pointer"),
        "aclrtGetMemInfo": Function("int32 >size >size"),
        "aclrtMemcpy": Function("pointer size pointer size int32"),
        "aclrtMemcpyAsync": Function("pointer size pointer size int32 pointer"),
        "aclrtMemset": Function("pointer size int32 size"),
        "aclrtMemsetAsync": Function("pointer size int32 size pointer"),
        "aclrtCreateStreamWithConfig": Function(">pointer uint32 uint32"),
        "aclrtDestroyStream": Function("pointer"),
        "aclrtDestroyStreamForce": Function("pointer", required=False),
        "aclrtStreamGetId": Function("pointer >int32", required=False),
        "aclrtStreamQuery": Function("pointer >int32"),
        "aclrtSynchronizeStreamWithTimeout": Function("pointer int32"),
        "aclrtStreamWaitEvent": Function("pointer pointer"),
        "aclrtCreateEventExWithFlag": Function(">pointer uint32"),
        "aclrtDestroyEvent": Function("pointer"),
        "aclrtRecordEvent": Function("pointer pointer"),
        "aclrtQueryEventStatus": Function("pointer >int32"),
        "aclrtSynchronizeEvent": Function("pointer"),
        "aclrtSynchronizeEventWithTimeout": Function("pointer int32"),
        "aclrtEventElapsedTime": Function(">float pointer pointer"),
        "aclrtEventGetTimestamp": Function("pointer >uint64", required=False),
    },
    "libnnopbase.so": {
        # viewDims, their number, data type, strides, offset, format, storageDims, their number, address
        "aclCreateTensor": Function("pointer uint64 int32 pointer int64 int32 pointer uint64 pointer", "handle"),
        "aclCreateScalar": Function("pointer int32", "handle"),
        "aclCreateIntArray": Function("pointer uint64", "handle"),
        "aclCreateFloatArray": Function("pointer uint64", "handle"),
        "aclCreateBoolArray": Function("pointer uint64", "handle"),
        "aclCreateTensorList": Function("pointer uint64", "handle"),
        "aclDestroyTensor": Function("pointer"),
        "aclDestroyScalar": Function("pointer"),
        "aclDestroyIntArray": Function("pointer"),
        "aclDestroyFloatArray": Function("pointer"),
        "aclDestroyBoolArray": Function("pointer"),
        "aclDestroyTensorList": Function("pointer"),
        "aclDestroyAclOpExecutor": Function("pointer", required=False),
    },
    "libopapi.so": {},  # the operators: operators.py
}

DATA_TYPES = {
    "float32": 0,
    "float16": 1,
    "int8": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 6,
    "uint16": 7,
    "uint32": 8,
    "int64": 9,
    "uint64": 10,
    "float64": 11,
    "bool": 12,
    "complex64": 16,
    "complex128": 17,
    "bfloat16": 27,
}
"""aclDataType by NumPy's name."""

# aclFormat: CANN tells batches of images from other tensors by the number of dimensions, as torch_npu does.
FORMAT_ND = 2
FORMATS = {3: 47, 4: 0, 5: 30}  # NCL, NCHW, NCDHW

MEMCPY_HOST_TO_DEVICE, MEMCPY_DEVICE_TO_HOST, MEMCPY_DEVICE_TO_DEVICE = 1, 2, 3  # aclrtMemcpyKind
MALLOC_HUGE_FIRST = 0  # aclrtMemMallocPolicy
MEMORY_HBM = 1  # aclrtMemAttr

STREAM_FAST_LAUNCH, STREAM_FAST_SYNC = 1, 2
STREAM_COMPLETE = 0  # aclrtStreamStatus
EVENT_SYNC, EVENT_CAPTURE_STREAM_PROGRESS, EVENT_TIME_LINE = 1, 2, 8
EVENT_RECORDED_COMPLETE = 1  # aclrtEventRecordedStatus
