"""What can go wrong with an Ascend device, as exceptions, and the names of CANN's return codes."""

from __future__ import annotations

from ..errors import AcceleratorError

# acl_base.h, rt_error_codes.h and "aclnn return codes" of CANN 8.1: those that a caller of this binding can meet.
CODE_NAMES = {
    100000: "ACL_ERROR_INVALID_PARAM",
    100001: "ACL_ERROR_UNINITIALIZE",
    100002: "ACL_ERROR_REPEAT_INITIALIZE",
    100003: "ACL_ERROR_INVALID_FILE",
    100024: "ACL_ERROR_OP_NOT_FOUND",
    100025: "ACL_ERROR_OP_LOAD_FAILED",
    100026: "ACL_ERROR_UNSUPPORTED_DATA_TYPE",
    100029: "ACL_ERROR_KERNEL_NOT_FOUND",
    100037: "ACL_ERROR_REPEAT_FINALIZE",
    100039: "ACL_ERROR_COMPILING_STUB_MODE",
    107000: "ACL_ERROR_RT_PARAM_INVALID",
    107001: "ACL_ERROR_RT_INVALID_DEVICEID",
    107002: "ACL_ERROR_RT_CONTEXT_NULL",
    107003: "ACL_ERROR_RT_STREAM_CONTEXT",
    107006: "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID",
    107007: "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL",
    107008: "ACL_ERROR_RT_ADDR_UNALIGNED",
    107016: "ACL_ERROR_RT_INVALID_MEMORY_TYPE",
    107017: "ACL_ERROR_RT_INVALID_HANDLE",
    107018: "ACL_ERROR_RT_INVALID_MALLOC_TYPE",
    107019: "ACL_ERROR_RT_WAIT_TIMEOUT",
    107020: "ACL_ERROR_RT_TASK_TIMEOUT",
    107022: "ACL_ERROR_RT_DEVICE_TASK_ABORT",
    107023: "ACL_ERROR_RT_STREAM_ABORT",
    148051: "ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED",
    161001: "ACLNN_ERR_PARAM_NULLPTR",
    161002: "ACLNN_ERR_PARAM_INVALID",
    200000: "ACL_ERROR_BAD_ALLOC",
    200001: "ACL_ERROR_API_NOT_SUPPORT",
    200002: "ACL_ERROR_INVALID_DEVICE",
    200003: "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED",
    200005: "ACL_ERROR_INVALID_RESOURCE_HANDLE",
    200006: "ACL_ERROR_FEATURE_UNSUPPORTED",
    207000: "ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
    207001: "ACL_ERROR_RT_MEMORY_ALLOCATION",
    207002: "ACL_ERROR_RT_MEMORY_FREE",
    207003: "ACL_ERROR_RT_AICORE_OVER_FLOW",
    207004: "ACL_ERROR_RT_NO_DEVICE",
    207005: "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL",
    207006: "ACL_ERROR_RT_NO_PERMISSION",
    207007: "ACL_ERROR_RT_NO_EVENT_RESOURCE",
    207008: "ACL_ERROR_RT_NO_STREAM_RESOURCE",
    207015: "ACL_ERROR_RT_REPEATED_INIT",
    207018: "ACL_ERROR_RT_DEVICE_OOM",
    300000: "ACL_ERROR_STORAGE_OVER_LIMIT",
    361001: "ACLNN_ERR_RUNTIME_ERROR",
    500000: "ACL_ERROR_INTERNAL_ERROR",
    500001: "ACL_ERROR_FAILURE",
    500002: "ACL_ERROR_GE_FAILURE",
    500003: "ACL_ERROR_RT_FAILURE",
    500004: "ACL_ERROR_DRV_FAILURE",
    507000: "ACL_ERROR_RT_INTERNAL_ERROR",
    507001: "ACL_ERROR_RT_TS_ERROR",
    507002: "ACL_ERROR_RT_STREAM_TASK_FULL",
    507004: "ACL_ERROR_RT_STREAM_NOT_COMPLETE",
    507006: "ACL_ERROR_RT_EVENT_NOT_COMPLETE",
    507007: "ACL_ERROR_RT_CONTEXT_RELEASE_ERROR",
    507008: "ACL_ERROR_RT_SOC_VERSION",
    507010: "ACL_ERROR_RT_LOST_HEARTBEAT",
    507012: "ACL_ERROR_RT_REPORT_TIMEOUT",
    507013: "ACL_ERROR_RT_SYS_DMA",
    507014: "ACL_ERROR_RT_AICORE_TIMEOUT",
    507015: "ACL_ERROR_RT_AICORE_EXCEPTION",
    507016: "ACL_ERROR_RT_AICORE_TRAP_EXCEPTION",
    507017: "ACL_ERROR_RT_AICPU_TIMEOUT",
    507018: "ACL_ERROR_RT_AICPU_EXCEPTION",
    507033: "ACL_ERROR_RT_DEV_SETUP_ERROR",
    507034: "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT",
    507035: "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION",
    507046: "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT",
    507047: "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT",
    507052: "ACL_ERROR_RT_COPY_DATA",
    507053: "ACL_ERROR_RT_DEVICE_MEM_ERROR",
    507899: "ACL_ERROR_RT_DRV_INTERNAL_ERROR",
    507900: "ACL_ERROR_RT_AICPU_INTERNAL_ERROR",
    507901: "ACL_ERROR_RT_SOCKET_CLOSE",
}

OUT_OF_MEMORY = frozenset((200000, 207001, 207018, 300000))
REFUSED_ARGUMENTS = frozenset((161001, 161002))  # by the first phase of an operator: nothing ran
TIMEOUTS = frozenset((107019, 107020, 507012, 507014, 507017, 507034, 507046, 507047))
DEVICE_LOST = frozenset((200002, 207004, 507010, 507901))


class NPUError(AcceleratorError):
    """A call of CANN failed: `call`, `error_code` and `message` say which, how and what CANN said about it."""

    def __init__(self, call: str, code: int, message: str) -> None:
        self.call = call
        self.message = message
        name = CODE_NAMES.get(code, "an unlisted code")
        super().__init__(f"{call} failed with {code} ({name}): {message or 'CANN left no message'}", code)


class NPUTimeoutError(NPUError, TimeoutError):
    """The device did not finish in the time that MINDTORCH_NPU_TIMEOUT_S allows."""


class NPUDeviceLostError(NPUError):
    """The device is gone: every further call of it fails."""


class DriverNotFoundError(RuntimeError):
    """CANN's libraries were not found or could not be loaded; the text says where they were looked for."""


class MissingSymbolError(RuntimeError):
    """A library of CANN lacks a function that is needed."""


def failure(call: str, code: int, message: str) -> NPUError:
    """The exception for a return code."""
    kind = NPUTimeoutError if code in TIMEOUTS else NPUDeviceLostError if code in DEVICE_LOST else NPUError
    return kind(call, code, message)
