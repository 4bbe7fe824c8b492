/* Records of libmspti: packed fields, sizes that are multiples of eight. */
#ifndef ASCEND_SIM_MSPTI_H
#define ASCEND_SIM_MSPTI_H

#include "sim.h"

enum {
    SUCCESS = 0,
    INVALID_PARAMETER = 1,
    MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2,
    MAX_LIMIT_REACHED = 3,
    DEVICE_OFFLINE = 4,
    QUEUE_EMPTY = 5,
    WITHOUT_LD_PRELOAD = 6,
    INNER = 999,
};

enum {
    KIND_MARKER = 1,
    KIND_KERNEL = 2,
    KIND_API = 3,
    KIND_HCCL = 4,
    KIND_MEMORY = 5,
    KIND_MEMCPY = 7,
    KIND_EXTERNAL_CORRELATION = 8,
    KIND_COMMUNICATION = 9,
    KIND_ACL_API = 10,
    KIND_RUNTIME_API = 12,
};

typedef void (*RequestFunction)(uint8_t **buffer, size_t *size, size_t *most);
typedef void (*CompleteFunction)(uint8_t *buffer, size_t size, size_t valid);

#define RECORD __attribute__((packed, aligned(8)))

typedef struct RECORD Marker {
    uint32_t kind, flag, on_device;
    uint64_t timestamp, id;
    uint32_t first, second; /* process and thread, or device and stream */
    const char *name, *domain;
} Marker;

typedef struct RECORD KernelRecord {
    uint32_t kind;
    int64_t start, end;
    uint32_t device, stream;
    uint64_t correlation;
    const char *type, *name;
} KernelRecord;

typedef struct RECORD Api {
    uint32_t kind;
    int64_t start, end;
    uint32_t process, thread;
    uint64_t correlation;
    const char *name;
} Api;

typedef struct RECORD External {
    uint32_t kind, external_kind;
    uint64_t id, correlation;
} External;

typedef struct RECORD Communication {
    uint32_t kind, dtype;
    uint64_t count;
    uint32_t device, stream;
    int64_t start, end;
    const char *algorithm, *name, *group;
    uint64_t correlation;
} Communication;

_Static_assert(sizeof(Marker) == 56 && sizeof(KernelRecord) == 56 && sizeof(Api) == 48, "records have the sizes of the header");
_Static_assert(sizeof(External) == 24 && sizeof(Communication) == 72, "records have the sizes of the header");

#endif
