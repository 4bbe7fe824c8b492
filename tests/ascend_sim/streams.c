/* Streams, each a thread with a queue. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

static Stream *streams;
static Stream *default_streams[MAX_DEVICES];
static int32_t last_stream;
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- the thread of a stream */

static bool matches(const char *wanted, const char *name) { return wanted[0] && !strcmp(wanted, name); }

static void delay(void) {
    const char *wanted = getenv("ASCEND_SIM_DELAY_US");
    if (!wanted) return;
    int64_t microseconds = atoll(wanted);
    struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static int run_task(Stream *stream, Task *task) {
    if (matches(fault.hanging_kernel, task->name)) {
        pthread_mutex_lock(&stream->lock);
        while (!stream->aborted && !device_lost) pthread_cond_wait(&stream->changed, &stream->lock);
        pthread_mutex_unlock(&stream->lock);
    }
    if (device_lost) return sim_fail(ACL_ERROR_RT_LOST_HEARTBEAT, "the device was lost while %s was due", task->name);
    if (stream->aborted) return ACL_SUCCESS;
    if (matches(fault.failing_kernel, task->name))
        return sim_fail(ACL_ERROR_RT_AICORE_EXCEPTION, "kernel %s hit an exception in the AI core", task->name);
    if (strcmp(task->name, "event") && strcmp(task->name, "mark")) delay();
    int64_t start = sim_wall_clock();
    int code = task->run(task->payload);
    if (!code) tell_kernel(stream, task, start);
    return code;
}

static _Thread_local const Stream *running; /* the stream of this thread */

/* Whether the task that runs on this thread should end, since its stream is destroyed or the device lost. */
EXPORT bool sim_is_aborted(void) { return device_lost || (running && running->aborted); }

const char *aclGetRecentErrMsg(void);

static void *stream_main(void *given) {
    Stream *stream = given;
    running = stream;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (!stream->first && !stream->aborted) pthread_cond_wait(&stream->changed, &stream->lock);
        Task *task = stream->first;
        if (!task) break;
        stream->first = task->next;
        if (!stream->first) stream->last = NULL;
        pthread_mutex_unlock(&stream->lock);
        int code = run_task(stream, task);
        const char *message = code ? aclGetRecentErrMsg() : NULL;
        if (task->drop) task->drop(task->payload);
        free(task);
        pthread_mutex_lock(&stream->lock);
        if (code && !stream->error) {
            stream->error = code;
            snprintf(stream->message, sizeof stream->message, "%s", message ? message : "");
        }
        stream->pending--;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static Stream *new_stream(int device) {
    Stream *stream = calloc(1, sizeof *stream);
    stream->device = device;
    pthread_mutex_init(&stream->lock, NULL);
    new_condition(&stream->changed);
    pthread_create(&stream->thread, NULL, stream_main, stream);
    pthread_mutex_lock(&streams_lock);
    stream->id = ++last_stream;
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&streams_lock);
    sim_count("streams", 1);
    return stream;
}

Stream *stream_or_default(Stream *stream) {
    if (stream) return stream;
    if (!default_streams[current_device]) default_streams[current_device] = new_stream(current_device);
    return default_streams[current_device];
}

/* Tasks that wait are dropped, one that hangs is let go, one that runs is waited for. */
static void end_stream(Stream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->aborted = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&streams_lock);
    Stream **link = &streams;
    while (*link && *link != stream) link = &(*link)->next;
    if (*link) *link = stream->next;
    if (default_streams[stream->device] == stream) default_streams[stream->device] = NULL;
    pthread_mutex_unlock(&streams_lock);
    free(stream);
    sim_count("streams", -1);
}

void end_streams(int device) {
    for (;;) {
        pthread_mutex_lock(&streams_lock);
        Stream *stream = streams;
        while (stream && stream->device != device) stream = stream->next;
        pthread_mutex_unlock(&streams_lock);
        if (!stream) return;
        end_stream(stream);
    }
}

void wake_streams(void) {
    pthread_mutex_lock(&streams_lock);
    for (Stream *stream = streams; stream; stream = stream->next) {
        pthread_mutex_lock(&stream->lock);
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
    }
    pthread_mutex_unlock(&streams_lock);
}

EXPORT int sim_enqueue(aclrtStream given, const char *name, TaskFunction run, void *payload, void (*drop)(void *)) {
    Stream *stream = stream_or_default(given);
    Task *task = malloc(sizeof *task);
    *task = (Task){name, run, payload, drop, newest_api, NULL};
    pthread_mutex_lock(&stream->lock);
    if (stream->last)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    stream->pending++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return ACL_SUCCESS;
}

/* The error of a stream, told once. */
int take_stream_error(Stream *stream) {
    pthread_mutex_lock(&stream->lock);
    int code = stream->error;
    stream->error = 0;
    if (code) sim_fail(code, "stream %d: %s", stream->id, stream->message);
    pthread_mutex_unlock(&stream->lock);
    return code;
}

/* Waits on a condition, with `lock` held, until a deadline or (negative) for ever; false: the time is over. */
bool wait_for(pthread_cond_t *changed, pthread_mutex_t *mutex, int32_t timeout, const struct timespec *deadline) {
    if (timeout < 0) return pthread_cond_wait(changed, mutex) == 0;
    return pthread_cond_timedwait(changed, mutex, deadline) != ETIMEDOUT;
}

bool stream_is_alive(const Stream *wanted) {
    pthread_mutex_lock(&streams_lock);
    const Stream *stream = streams;
    while (stream && stream != wanted) stream = stream->next;
    pthread_mutex_unlock(&streams_lock);
    return stream != NULL;
}

static int drain(Stream *stream, int32_t timeout) {
    struct timespec deadline;
    deadline_after(&deadline, timeout < 0 ? 0 : timeout);
    pthread_mutex_lock(&stream->lock);
    while (stream->pending) {
        if (!wait_for(&stream->changed, &stream->lock, timeout, &deadline) && stream->pending) {
            int64_t pending = stream->pending;
            pthread_mutex_unlock(&stream->lock);
            return sim_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream %d still has %lld tasks after %d ms", stream->id,
                            (long long)pending, timeout);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return take_stream_error(stream);
}

/* ---------------------------------------------------------------- the ABI: streams */

EXPORT aclError aclrtCreateStream(aclrtStream *stream) {
    int code = need_device();
    if (code) return code;
    *stream = new_stream(current_device);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag) {
    if (priority > 7) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "no priority %u", priority);
    (void)flag;
    return aclrtCreateStream(stream);
}

EXPORT aclError aclrtDestroyStream(aclrtStream stream) {
    if (!stream) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the default stream cannot be destroyed");
    end_stream(stream);
    return sim_enter();
}

EXPORT aclError aclrtDestroyStreamForce(aclrtStream stream) { return aclrtDestroyStream(stream); }

EXPORT aclError aclrtStreamGetId(aclrtStream stream, int32_t *id) {
    int code = need_device();
    if (code) return code;
    *id = stream_or_default(stream)->id;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
    int code = need_device();
    if (code) return code;
    int64_t start = sim_api_begin();
    code = drain(stream_or_default(stream), timeout);
    sim_api_end("", "aclrtSynchronizeStreamWithTimeout", start);
    return code;
}

EXPORT aclError aclrtSynchronizeStream(aclrtStream stream) { return aclrtSynchronizeStreamWithTimeout(stream, -1); }

EXPORT aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
    int code = need_device();
    if (code) return code;
    Stream *waiting[256];
    int count = 0;
    pthread_mutex_lock(&streams_lock);
    for (Stream *stream = streams; stream && count < 256; stream = stream->next)
        if (stream->device == current_device) waiting[count++] = stream;
    pthread_mutex_unlock(&streams_lock);
    for (int i = 0; i < count && !code; i++) code = drain(waiting[i], timeout);
    return code;
}

EXPORT aclError aclrtSynchronizeDevice(void) { return aclrtSynchronizeDeviceWithTimeout(-1); }

EXPORT aclError aclrtStreamQuery(aclrtStream given, int *status) {
    int code = need_device();
    if (code) return code;
    Stream *stream = stream_or_default(given);
    pthread_mutex_lock(&stream->lock);
    *status = stream->pending ? 1 : 0;
    pthread_mutex_unlock(&stream->lock);
    return ACL_SUCCESS;
}
