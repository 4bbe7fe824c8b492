"""The tables of Ascend's databases as data: columns with their types, and the values of enums."""

from __future__ import annotations

from collections.abc import Mapping

# ascend_pytorch_profiler_N.db: what tools look for, in the order in which it is written.
PROFILER: Mapping[str, str] = {
    "STRING_IDS": "id INTEGER PRIMARY KEY, value TEXT",
    "ENUM_API_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_HCCL_DATA_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_HCCL_LINK_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_HCCL_TRANSPORT_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_HCCL_RDMA_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_MSTX_EVENT_TYPE": "id INTEGER PRIMARY KEY, name TEXT",
    "ENUM_MEMCPY_OPERATION": "id INTEGER PRIMARY KEY, name TEXT",
    "META_DATA": "name TEXT, value TEXT",
    "HOST_INFO": "hostUid TEXT, hostName TEXT",
    "NPU_INFO": "id INTEGER, name TEXT",
    "RANK_DEVICE_MAP": "rankId INTEGER, deviceId INTEGER",
    "SESSION_TIME_INFO": "startTimeNs INTEGER, endTimeNs INTEGER",
    "STEP_TIME": "id INTEGER, startNs INTEGER, endNs INTEGER",
    "PYTORCH_API": (
        "startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER, sequenceNumber INTEGER, "
        "fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER"
    ),
    "CONNECTION_IDS": "id INTEGER, connectionId INTEGER",
    "PYTORCH_CALLCHAINS": "id INTEGER, stack INTEGER, stackDepth INTEGER",
    "GC_RECORD": "startNs INTEGER, endNs INTEGER, globalTid INTEGER",
    "CANN_API": "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER",
    "TASK": (
        "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, "
        "taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER"
    ),
    "COMPUTE_TASK_INFO": (
        "name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, mixBlockNum INTEGER, taskType INTEGER, "
        "opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, "
        "outputDataTypes INTEGER, outputShapes INTEGER, attrInfo INTEGER, opState INTEGER, hf32Eligible INTEGER"
    ),
    "TASK_PMU_INFO": "globalTaskId INTEGER, name INTEGER, value NUMERIC",
    "TASK_NAMES": "globalTaskId INTEGER PRIMARY KEY, name INTEGER",  # of copies, in databases that are written here
    "MEMCPY_INFO": "globalTaskId INTEGER, size NUMERIC, memcpyOperation NUMERIC",
    "COMMUNICATION_OP": (
        "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER PRIMARY KEY, "
        "relay INTEGER, retry INTEGER, dataType INTEGER, algType INTEGER, count NUMERIC, opType INTEGER, deviceId INTEGER"
    ),
    "COMMUNICATION_TASK_INFO": (
        "name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, groupName INTEGER, notifyId INTEGER, "
        "rdmaType INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, size INTEGER, dataType INTEGER, "
        "linkType INTEGER, opId INTEGER, isMaster INTEGER, bandwidth NUMERIC"
    ),
    "OP_MEMORY": (
        "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, activeReleaseTime INTEGER, duration INTEGER, "
        "activeDuration INTEGER, allocationTotalAllocated INTEGER, allocationTotalReserved INTEGER, "
        "allocationTotalActive INTEGER, releaseTotalAllocated INTEGER, releaseTotalReserved INTEGER, "
        "releaseTotalActive INTEGER, streamPtr INTEGER, deviceId INTEGER"
    ),
    "MEMORY_RECORD": (
        "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, totalActive INTEGER, "
        "streamPtr INTEGER, deviceId INTEGER"
    ),
}

# Tables that are there only if they have a row: tools take an empty one for figures that are missing.
NOT_EMPTY = frozenset({"OP_MEMORY", "MEMORY_RECORD", "GC_RECORD", "TASK_NAMES", "COMMUNICATION_TASK_INFO"})

# analysis.db: what is computed of a recording.
ANALYSIS: Mapping[str, str] = {
    "StepTraceTime": (
        "deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, "
        "communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
        "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"
    ),
    "CommAnalyzerTime": (
        "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, "
        "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT"
    ),
    "CommAnalyzerBandwidth": (
        "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, "
        "bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, total_duration NUMERIC, "
        "step TEXT, type TEXT"
    ),
    "CommAnalyzerMatrix": (
        "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, transit_size NUMERIC, "
        "transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT"
    ),
}

# Types of the rows of PYTORCH_API.
OPS, QUEUE, CALLS, MARKS = 50001, 50002, 50003, 50004
API_TYPES = {
    20000: "acl",
    15000: "model",
    10000: "node",
    5500: "communication",
    5000: "runtime",
    OPS: "op",
    QUEUE: "queue",
    CALLS: "trace",
    MARKS: "mstx",
}
_HCCL_TYPES = ("INT8", "INT16", "INT32", "FP16", "FP32", "INT64", "UINT64", "UINT8", "UINT16", "UINT32", "FP64", "BFP16")
INVALID = 65535
_UNKNOWN = {65534: "N/A", INVALID: "INVALID_TYPE"}
HCCL_TYPES = {**dict(enumerate(_HCCL_TYPES)), 12: "INT128", **_UNKNOWN}
_LINKS = ("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE", "RESERVED")
LINK_TYPES = {**dict(enumerate(_LINKS)), **_UNKNOWN}
TRANSPORT_TYPES = {**dict(enumerate(("SDMA", "RDMA", "LOCAL"))), **_UNKNOWN}
_RDMA = ("SEND_NOTIFY", "SEND_PAYLOAD", "PAYLOAD_PREPARE", "PAYLOAD_CHECK", "PAYLOAD_ACK", "SEND_OP")
RDMA_TYPES = {**{number: f"RDMA_{name}" for number, name in enumerate(_RDMA)}, **_UNKNOWN}
MSTX_EVENTS = {0: "marker", 1: "push/pop", 2: "start/end", 3: "marker_ex"}
MEMCPY_OPERATIONS = {
    0: "host to host",
    1: "host to device",
    2: "device to host",
    3: "device to device",
    4: "managed memory",
    65535: "other",
}
DIRECTIONS = {0: "HtoH", 1: "HtoD", 2: "DtoH", 3: "DtoD"}  # of these, as names of copies have them
# Columns of COMPUTE_TASK_INFO under the names that kernel_details.csv has; older databases have blockDim for blockNum.
KERNEL_DETAILS = {
    "opType": "Type",
    "taskType": "Accelerator Core",
    "blockNum": "Block Num",
    "blockDim": "Block Num",
    "mixBlockNum": "Mix Block Num",
    "mixBlockDim": "Mix Block Num",
    "inputShapes": "Input Shapes",
    "inputDataTypes": "Input Data Types",
    "inputFormats": "Input Formats",
    "outputShapes": "Output Shapes",
    "outputDataTypes": "Output Data Types",
    "outputFormats": "Output Formats",
    "opState": "OP State",
    "hf32Eligible": "HF32 Eligible",
}
KERNEL_NUMBERS = frozenset({"blockNum", "blockDim", "mixBlockNum", "mixBlockDim"})

# Where numbers of texts and of connections begin that the framework gives; below are CANN's.
FIRST_TEXT, FIRST_CONNECTION = 1 << 28, 5 << 28
