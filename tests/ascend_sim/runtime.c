/* Process-wide state of the simulator: start and end, devices, contexts, error messages, counters, faults. */
#define _GNU_SOURCE
#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Context {
    int device;
} Context;

Fault fault = {.memory_limit = -1, .lost_after = -1};
_Atomic bool device_lost;
_Thread_local int current_device = -1;
static _Thread_local Context *current_context;
static _Thread_local char recent_message[1024];
static _Thread_local char returned_message[1024];
static Context default_contexts[MAX_DEVICES];
static _Atomic bool initialized;
static _Atomic int64_t calls;

/* ---------------------------------------------------------------- messages and counters */

EXPORT int sim_fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(recent_message, sizeof recent_message, "EZ9999: [simulator] ");
    vsnprintf(recent_message + length, sizeof recent_message - (size_t)length, format, arguments);
    va_end(arguments);
    return code;
}

/* As in CANN: the message of this thread, which is forgotten once it was asked for. */
EXPORT const char *aclGetRecentErrMsg(void) {
    if (!recent_message[0]) return NULL;
    strcpy(returned_message, recent_message);
    recent_message[0] = 0;
    return returned_message;
}

static const char *const counter_names[] = {"blocks", "bytes", "host_blocks", "streams", "events", "descriptors",
                                            "executors", "kernels", "copies", "calls", "mspti_dropped"};
enum { COUNTERS = sizeof counter_names / sizeof *counter_names };
static _Atomic int64_t counters[COUNTERS];

EXPORT void sim_count(const char *name, int64_t change) {
    for (int i = 0; i < COUNTERS; i++)
        if (!strcmp(counter_names[i], name)) counters[i] += change;
}

/* What is alive (blocks, bytes, host_blocks, streams, events, descriptors, executors) or was done; -1: no such counter. */
EXPORT int64_t sim_counter(const char *name) {
    if (!strcmp(name, "calls")) return calls;
    for (int i = 0; i < COUNTERS; i++)
        if (!strcmp(counter_names[i], name)) return counters[i];
    return -1;
}

/* ---------------------------------------------------------------- faults */

static void read_one_fault(char *text) {
    char *value = strchr(text, ':');
    if (value) *value++ = 0;
    if (!strcmp(text, "oom"))
        fault.memory_limit = value ? atoll(value) : 0;
    else if (!strcmp(text, "device_lost"))
        fault.lost_after = value ? atoll(value) : 0;
    else if (!strcmp(text, "drift"))
        fault.drift = value ? atoll(value) : 0;
    else if (!strcmp(text, "mspti") && value)
        ; /* libmspti's own */
    else if (!strcmp(text, "kernel") && value)
        snprintf(fault.failing_kernel, sizeof fault.failing_kernel, "%s", value);
    else if (!strcmp(text, "hang") && value)
        snprintf(fault.hanging_kernel, sizeof fault.hanging_kernel, "%s", value);
    else {
        fprintf(stderr, "ASCEND_SIM_FAULT: no fault is called '%s'\n", text);
        abort();
    }
}

void read_faults(void) {
    const char *wanted = getenv("ASCEND_SIM_FAULT");
    if (!wanted || !*wanted) return;
    char *text = strdup(wanted), *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) read_one_fault(one);
    free(text);
}

/* Every call of the ABI that reaches the device starts here. */
EXPORT int sim_enter(void) {
    if (!initialized) return sim_fail(ACL_ERROR_UNINITIALIZE, "aclInit has not been called");
    int64_t call = ++calls;
    if (fault.lost_after >= 0 && call > fault.lost_after && !device_lost) {
        device_lost = true;
        wake_streams();
    }
    if (device_lost) return sim_fail(ACL_ERROR_RT_LOST_HEARTBEAT, "the device does not answer any more");
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- start and end */

EXPORT aclError aclInit(const char *config) {
    (void)config;
    if (initialized) return sim_fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called twice");
    read_faults();
    for (int i = 0; i < MAX_DEVICES; i++) default_contexts[i].device = i;
    initialized = true;
    return ACL_SUCCESS;
}

EXPORT aclError aclFinalize(void) {
    if (!initialized) return sim_fail(ACL_ERROR_UNINITIALIZE, "aclInit has not been called");
    for (int i = 0; i < device_count(); i++) end_streams(i);
    initialized = false;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch) {
    *major = 1;
    *minor = 13;
    *patch = 0;
    return ACL_SUCCESS;
}

EXPORT const char *aclrtGetSocName(void) { return "Ascend910-simulator"; }

/* ---------------------------------------------------------------- devices and contexts */

int device_count(void) {
    const char *wanted = getenv("ASCEND_SIM_DEVICES");
    int count = wanted ? atoi(wanted) : 2;
    return count < 0 ? 0 : count > MAX_DEVICES ? MAX_DEVICES : count;
}

EXPORT aclError aclrtGetDeviceCount(uint32_t *count) {
    int code = sim_enter();
    if (code) return code;
    *count = (uint32_t)device_count();
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetDevice(int32_t device) {
    int code = sim_enter();
    if (code) return code;
    if (device < 0 || device >= device_count())
        return sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %d", device);
    current_device = device;
    current_context = &default_contexts[device];
    return ACL_SUCCESS;
}

int need_device(void) {
    int code = sim_enter();
    if (code) return code;
    if (current_device < 0) return sim_fail(ACL_ERROR_RT_CONTEXT_NULL, "this thread has no device: call aclrtSetDevice");
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetDevice(int32_t *device) {
    int code = need_device();
    if (code) return code;
    *device = current_device;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtResetDevice(int32_t device) {
    if (device < 0 || device >= device_count())
        return sim_fail(ACL_ERROR_RT_INVALID_DEVICEID, "there is no device %d", device);
    end_streams(device);
    return sim_enter();
}

EXPORT aclError aclrtCreateContext(void **context, int32_t device) {
    int code = aclrtSetDevice(device);
    if (code) return code;
    Context *made = malloc(sizeof *made);
    made->device = device;
    *context = current_context = made;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtDestroyContext(void *context) {
    Context *given = context;
    if (given >= default_contexts && given < default_contexts + MAX_DEVICES)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a default context cannot be destroyed");
    if (current_context == given) current_context = NULL;
    free(given);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSetCurrentContext(void *context) {
    int code = sim_enter();
    if (code) return code;
    if (!context) return sim_fail(ACL_ERROR_RT_CONTEXT_NULL, "no context given");
    current_context = context;
    current_device = current_context->device;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtGetCurrentContext(void **context) {
    int code = need_device();
    if (code) return code;
    *context = current_context;
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- time */

/* The device's clock started at another moment than the host's, as on a card. */
int64_t device_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    static _Atomic int64_t first;
    int64_t host = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, unset = 0;
    atomic_compare_exchange_strong(&first, &unset, host);
    return host + (host - first) / 1000000 * fault.drift + (host - first) % 1000000 * fault.drift / 1000000 + 86400000000123;
}

void deadline_after(struct timespec *when, int32_t milliseconds) {
    clock_gettime(CLOCK_MONOTONIC, when);
    int64_t nanoseconds = when->tv_nsec + (int64_t)(milliseconds % 1000) * 1000000;
    when->tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
    when->tv_nsec = nanoseconds % 1000000000;
}

void new_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}
