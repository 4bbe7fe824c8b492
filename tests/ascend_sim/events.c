/* Events: marks in streams, with times measured on the streams' threads. */
#include <stdlib.h>
#include <time.h>

#include "runtime.h"

#define SYNC 0x1u      /* streams can wait for an event with this flag */
#define TIME_LINE 0x8u /* an event with this flag knows its time */

/* An event that is recorded twice forgets the first time: `recorded` counts requests, `completed` the last one done. */
typedef struct Event {
    uint32_t flags;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t recorded, completed;
    int64_t nanoseconds;
    Stream *stream;
    int references; /* the handle, and every task that still has to touch the event */
} Event;

static int make_event(Event **event, uint32_t flags) {
    int code = need_device();
    if (code) return code;
    Event *made = calloc(1, sizeof *made);
    made->flags = flags;
    made->references = 1;
    pthread_mutex_init(&made->lock, NULL);
    new_condition(&made->changed);
    sim_count("events", 1);
    *event = made;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtCreateEvent(Event **event) { return make_event(event, SYNC | TIME_LINE); }

EXPORT aclError aclrtCreateEventExWithFlag(Event **event, uint32_t flag) {
    if (!flag || flag & ~0x2Bu) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "no event flag 0x%x", flag);
    return make_event(event, flag);
}

static void keep_event(Event *event) {
    pthread_mutex_lock(&event->lock);
    event->references++;
    pthread_mutex_unlock(&event->lock);
}

static void drop_event(void *given) {
    Event *event = given;
    pthread_mutex_lock(&event->lock);
    bool last = --event->references == 0;
    pthread_mutex_unlock(&event->lock);
    if (last) free(event);
}

EXPORT aclError aclrtDestroyEvent(Event *event) {
    drop_event(event);
    sim_count("events", -1);
    return sim_enter();
}

typedef struct Record {
    Event *event;
    uint64_t ticket;
} Record;

static void drop_record(void *given) {
    Record *record = given;
    pthread_mutex_lock(&record->event->lock); /* also if it was dropped: nobody must wait for what never comes */
    if (record->event->completed < record->ticket) record->event->completed = record->ticket;
    pthread_cond_broadcast(&record->event->changed);
    pthread_mutex_unlock(&record->event->lock);
    drop_event(record->event);
    free(record);
}

static int run_record(void *given) {
    Record *record = given;
    pthread_mutex_lock(&record->event->lock);
    record->event->nanoseconds = device_clock();
    pthread_mutex_unlock(&record->event->lock);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtRecordEvent(Event *event, aclrtStream given) {
    int code = need_device();
    if (code) return code;
    Stream *stream = stream_or_default(given);
    keep_event(event);
    Record *record = malloc(sizeof *record);
    pthread_mutex_lock(&event->lock);
    *record = (Record){event, ++event->recorded};
    event->stream = stream;
    pthread_mutex_unlock(&event->lock);
    return sim_enqueue(stream, "event", run_record, record, drop_record);
}

EXPORT aclError aclrtQueryEventStatus(Event *event, int *status) {
    int code = need_device();
    if (code) return code;
    pthread_mutex_lock(&event->lock);
    *status = event->completed == event->recorded;
    pthread_mutex_unlock(&event->lock);
    return ACL_SUCCESS;
}

static int wait_for_ticket(Event *event, uint64_t ticket, int32_t timeout, Stream *waiting) {
    struct timespec deadline;
    deadline_after(&deadline, timeout < 0 ? 0 : timeout);
    int code = ACL_SUCCESS;
    pthread_mutex_lock(&event->lock);
    while (event->completed < ticket && !code) {
        if (waiting) { /* a stream that is aborted or lost must not wait for ever: look now and then */
            deadline_after(&deadline, 20);
            wait_for(&event->changed, &event->lock, 0, &deadline);
            if (waiting->aborted || device_lost) break;
        } else if (!wait_for(&event->changed, &event->lock, timeout, &deadline) && event->completed < ticket) {
            code = sim_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "the event is not complete after %d ms", timeout);
        }
    }
    pthread_mutex_unlock(&event->lock);
    return code;
}

EXPORT aclError aclrtSynchronizeEventWithTimeout(Event *event, int32_t timeout) {
    int code = need_device();
    if (!code) code = wait_for_ticket(event, event->recorded, timeout, NULL);
    return code || !stream_is_alive(event->stream) ? code : take_stream_error(event->stream);
}

EXPORT aclError aclrtSynchronizeEvent(Event *event) { return aclrtSynchronizeEventWithTimeout(event, -1); }

typedef struct Wait {
    Event *event;
    uint64_t ticket;
    Stream *stream;
} Wait;

static int run_wait(void *given) {
    Wait *wait = given;
    return wait_for_ticket(wait->event, wait->ticket, -1, wait->stream);
}

static void drop_wait(void *given) {
    drop_event(((Wait *)given)->event);
    free(given);
}

EXPORT aclError aclrtStreamWaitEvent(aclrtStream given, Event *event) {
    int code = need_device();
    if (code) return code;
    if (!(event->flags & SYNC)) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the event was made without ACL_EVENT_SYNC");
    Stream *stream = stream_or_default(given);
    keep_event(event);
    Wait *wait = malloc(sizeof *wait);
    *wait = (Wait){event, event->recorded, stream};
    return sim_enqueue(stream, "event", run_wait, wait, drop_wait);
}

static int time_of(Event *event, int64_t *nanoseconds) {
    if (!(event->flags & TIME_LINE))
        return sim_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event was made without ACL_EVENT_TIME_LINE");
    pthread_mutex_lock(&event->lock);
    bool ready = event->recorded && event->completed == event->recorded && event->nanoseconds;
    *nanoseconds = event->nanoseconds;
    pthread_mutex_unlock(&event->lock);
    return ready ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_EVENT_NOT_COMPLETE, "the event is not complete");
}

EXPORT aclError aclrtEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    int64_t from = 0, to = 0;
    int code = need_device();
    if (!code) code = time_of(start, &from);
    if (!code) code = time_of(end, &to);
    if (!code) *milliseconds = (float)((double)(to - from) / 1e6);
    return code;
}

EXPORT aclError aclrtEventGetTimestamp(Event *event, uint64_t *microseconds) {
    int64_t nanoseconds = 0;
    int code = need_device();
    if (!code) code = time_of(event, &nanoseconds);
    if (!code) *microseconds = (uint64_t)nanoseconds / 1000;
    return code;
}
