/* What the three libraries of the simulator share: objects behind the opaque handles, streams and the memory of a device. */
#ifndef ASCEND_SIM_H
#define ASCEND_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_DIMS 8
#define MAX_ARGUMENTS 24
#define MAX_VALUES 16 /* of a list of numbers */
#define MAX_TENSORS 1024 /* of a list of tensors */

/* Values of aclError and aclnnStatus, as in acl_base.h, rt_error_codes.h and aclnn's list of return codes. */
enum {
    ACL_SUCCESS = 0,
    ACL_ERROR_UNINITIALIZE = 100001,
    ACL_ERROR_REPEAT_INITIALIZE = 100002,
    ACL_ERROR_RT_PARAM_INVALID = 107000,
    ACL_ERROR_RT_INVALID_DEVICEID = 107001,
    ACL_ERROR_RT_CONTEXT_NULL = 107002,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006,
    ACL_ERROR_RT_ADDR_UNALIGNED = 107008,
    ACL_ERROR_RT_INVALID_HANDLE = 107017,
    ACLNN_ERR_PARAM_NULLPTR = 161001,
    ACLNN_ERR_PARAM_INVALID = 161002,
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001,
    ACL_ERROR_RT_EVENT_NOT_COMPLETE = 507006,
    ACL_ERROR_RT_LOST_HEARTBEAT = 507010,
    ACL_ERROR_RT_AICORE_EXCEPTION = 507015,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046,
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047,
};

typedef enum {
    ACL_FLOAT = 0,
    ACL_FLOAT16 = 1,
    ACL_INT8 = 2,
    ACL_INT32 = 3,
    ACL_UINT8 = 4,
    ACL_INT16 = 6,
    ACL_INT64 = 9,
    ACL_DOUBLE = 11,
    ACL_BOOL = 12,
    ACL_COMPLEX64 = 16,
    ACL_COMPLEX128 = 17,
    ACL_BF16 = 27,
} aclDataType;

typedef int aclError;
typedef int32_t aclnnStatus;
typedef struct Stream *aclrtStream;

/* A view of device memory. `data` is a device address: `host_view` gives the bytes behind it. */
typedef struct aclTensor {
    int ndim;
    int64_t dims[MAX_DIMS];
    int64_t strides[MAX_DIMS]; /* in elements */
    aclDataType dtype;
    int format;
    char *data;
} aclTensor;

typedef struct aclScalar {
    aclDataType dtype;
    double real;
    int64_t integer;
} aclScalar;

typedef struct aclIntArray {
    uint64_t size;
    int64_t values[MAX_VALUES];
} aclIntArray;

typedef struct aclBoolArray {
    uint64_t size;
    bool values[MAX_VALUES];
} aclBoolArray;

typedef struct aclFloatArray {
    uint64_t size;
    float values[MAX_VALUES];
} aclFloatArray;

typedef struct aclTensorList {
    uint64_t size;
    const aclTensor *values[MAX_TENSORS];
} aclTensorList;

typedef struct aclOpExecutor aclOpExecutor;
typedef int (*Kernel)(aclOpExecutor *e);

/* One operator call between its two phases: a copy of every argument, so that the caller's handles may go at once. */
typedef struct Argument {
    bool given;
    aclTensor tensor; /* `data` is the address the kernel may use once the call runs */
    aclScalar scalar;
    aclIntArray ints;
    int64_t integer;
    double real;
    int count; /* of `list` */
    aclTensor *list;
} Argument;

struct aclOpExecutor {
    const char *name;
    Kernel kernel;
    bool planning; /* first phase: check the arguments, compute nothing */
    uint64_t workspace_size;
    char *workspace;
    int count;
    Argument arguments[MAX_ARGUMENTS];
    char message[256];
};

/* A task runs on its stream's thread; a result other than 0 is the stream's error. */
typedef int (*TaskFunction)(void *payload);

#define EXPORT __attribute__((visibility("default")))

/* What libmspti sees: calls of the ABI, kernels, marks. Times are CLOCK_REALTIME in nanoseconds. */
typedef struct SimMark {
    uint32_t flag;
    uint32_t on_device;
    int64_t time;
    uint64_t id;
    uint32_t first, second; /* process and thread, or device and stream */
    const char *name, *domain;
} SimMark;

typedef struct SimWatch {
    void (*api)(const char *name, uint64_t correlation, int64_t start, int64_t end);
    void (*kernel)(const char *name, int device, int stream, uint64_t correlation, int64_t start, int64_t end);
    void (*mark)(const SimMark *mark);
} SimWatch;

/* A collective that runs on this thread: its communicator, and how many elements of which data type of HCCL's. */
typedef struct SimTalk {
    const char *group;
    uint64_t count;
    uint32_t dtype;
} SimTalk;

EXPORT SimTalk *sim_talk(void);
EXPORT bool sim_is_aborted(void);
EXPORT void sim_watch(const SimWatch *watch);
EXPORT int64_t sim_api_begin(void);
EXPORT void sim_api_end(const char *prefix, const char *name, int64_t start);
EXPORT void sim_mark(const SimMark *mark);
EXPORT int64_t sim_wall_clock(void);
EXPORT void sim_place(aclrtStream stream, uint32_t *device, uint32_t *id);
EXPORT int sim_kernels_of(const char *operator);

EXPORT int sim_enqueue(aclrtStream stream, const char *name, TaskFunction run, void *payload, void (*drop)(void *));
EXPORT int sim_enter(void);
EXPORT int sim_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
EXPORT char *sim_host_view(const void *device_address, uint64_t size);
EXPORT int64_t sim_counter(const char *name);
EXPORT void sim_count(const char *name, int64_t change);
EXPORT size_t sim_item_size(aclDataType dtype);
EXPORT void sim_end_executor(void *executor);

#endif
