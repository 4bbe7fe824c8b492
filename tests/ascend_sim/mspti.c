/* libmspti: what ran on the streams, as records in buffers of the client's, delivered late and by a thread of its own.

ASCEND_SIM_FAULT=mspti:<name> switches on what was seen of the real library or may be met:
subscribed (by another tool), offline (a device), old (a library of before the newer kinds), silent (no records), lost (every
third kernel), unlinked (every third kernel has no correlation id), repeated (ids come again), early (kernels begin before
their launch), no_marks (of devices), truncated (the last record of a buffer), unknown (a record of a kind that clients do not
know).
*/
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mspti.h"

#define SMALLEST_BUFFER (2u << 20)

typedef struct Waiting {
    int64_t due;
    uint32_t size;
    struct Waiting *next;
    uint8_t bytes[];
} Waiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool subscribed, running, flushing;
static uint32_t enabled; /* a bit for each kind */
static RequestFunction request;
static CompleteFunction complete;
static Waiting *first, *last;
static _Atomic uint64_t kernels_told;
static uint64_t external[5][64];
static int external_count[5];

static bool has_fault(const char *name) {
    const char *wanted = getenv("ASCEND_SIM_FAULT");
    char text[64];
    snprintf(text, sizeof text, "mspti:%s", name);
    for (const char *at = wanted; at && (at = strstr(at, text)); at++)
        if (!at[strlen(text)] || at[strlen(text)] == ',') return true;
    return false;
}

static int64_t setting(const char *name, int64_t otherwise) {
    const char *wanted = getenv(name);
    return wanted ? atoll(wanted) : otherwise;
}

/* Names live as long as the library. */
static const char *interned(const char *text) {
    static char **names;
    static size_t count;
    static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&names_lock);
    size_t at = 0;
    while (at < count && strcmp(names[at], text)) at++;
    if (at == count) {
        names = realloc(names, ++count * sizeof *names);
        names[at] = strdup(text);
    }
    const char *found = names[at];
    pthread_mutex_unlock(&names_lock);
    return found;
}

static void put(uint32_t kind, const void *record, uint32_t size) {
    if (!(enabled & 1u << kind) || has_fault("silent")) return;
    Waiting *made = malloc(sizeof *made + size);
    *made = (Waiting){sim_wall_clock() + setting("ASCEND_SIM_MSPTI_DELAY_MS", 20) * 1000000, size, NULL};
    memcpy(made->bytes, record, size);
    pthread_mutex_lock(&lock);
    if (last)
        last->next = made;
    else
        first = made;
    last = made;
    pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- what the runtime tells */

static void on_api(const char *name, uint64_t correlation, int64_t start, int64_t end) {
    Api record = {0, start, end, (uint32_t)getpid(), (uint32_t)gettid(), correlation, interned(name)};
    if (has_fault("repeated")) record.correlation = correlation % 8 + 1;
    for (record.kind = KIND_API; record.kind; record.kind = record.kind == KIND_API ? KIND_ACL_API : 0)
        put(record.kind, &record, sizeof record);
    for (int kind = 1; kind < 5; kind++) /* one stack for all threads, whatever the header says */
        if (external_count[kind]) {
            External outer = {KIND_EXTERNAL_CORRELATION, (uint32_t)kind, external[kind][external_count[kind] - 1], correlation};
            put(KIND_EXTERNAL_CORRELATION, &outer, sizeof outer);
        }
}

static void on_kernel(const char *name, int device, int stream, uint64_t correlation, int64_t start, int64_t end) {
    if (!strncmp(name, "Hccl", 4)) {
        const SimTalk *talk = sim_talk();
        Communication record = {KIND_COMMUNICATION, talk->dtype, talk->count, (uint32_t)device, (uint32_t)stream, start, end,
                                interned("MESH"), interned(name), interned(talk->group), correlation};
        put(KIND_COMMUNICATION, &record, sizeof record);
        return;
    }
    int count = sim_kernels_of(name);
    int64_t length = (end - start) / count;
    for (int part = 0; part < count; part++) {
        char text[128];
        if (part + 1 < count)
            snprintf(text, sizeof text, "trans_TransData_%d", part);
        else
            snprintf(text, sizeof text, "aclnn%s_%sAiCore_%s", name, name, name);
        int64_t began = start + part * length, ended = part + 1 == count ? end : began + length;
        uint64_t number = kernels_told++;
        KernelRecord record = {KIND_KERNEL,         began, ended, (uint32_t)device, (uint32_t)stream, correlation,
                          interned(strstr(name, "atMul") || !strcmp(name, "Mm") ? "AI_CORE" : "AI_VECTOR_CORE"), interned(text)};
        if (has_fault("repeated")) record.correlation = correlation % 8 + 1;
        if (has_fault("unlinked") && number % 3 == 2) record.correlation = 0;
        if (has_fault("early")) record.start -= 50000000, record.end -= 50000000;
        if (!(has_fault("lost") && number % 3 == 2)) put(KIND_KERNEL, &record, sizeof record);
    }
}

static void on_mark(const SimMark *mark) {
    if (mark->on_device && has_fault("no_marks")) return;
    Marker record = {KIND_MARKER, mark->flag, mark->on_device, mark->time, mark->id, mark->first, mark->second,
                     interned(mark->name), interned(mark->domain)};
    put(KIND_MARKER, &record, sizeof record);
}

static const SimWatch watch = {on_api, on_kernel, on_mark};

/* ---------------------------------------------------------------- delivery */

static void hand_over(uint8_t *buffer, size_t size, size_t used) {
    if (!buffer) return;
    if (has_fault("truncated") && used > 16) used -= 12;
    if (has_fault("unknown") && used + 64 <= size) { /* of no size that a client could know */
        memset(buffer + used, 0, 64);
        *(uint32_t *)(buffer + used) = 99;
        used += 64;
    }
    complete(buffer, size, used);
}

static void *deliver(void *given) {
    (void)given;
    uint8_t *buffer = NULL;
    size_t size = 0, used = 0, most = 0;
    pthread_mutex_lock(&lock);
    while (running) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 2000000;
        if (soon.tv_nsec >= 1000000000) soon.tv_sec++, soon.tv_nsec -= 1000000000;
        if (!flushing) pthread_cond_timedwait(&changed, &lock, &soon);
        bool flush = flushing;
        while (first && first->due <= sim_wall_clock()) {
            Waiting *record = first;
            first = record->next;
            if (!first) last = NULL;
            pthread_mutex_unlock(&lock);
            if (!buffer) {
                request(&buffer, &size, &most);
                used = 0;
                if (buffer && size < SMALLEST_BUFFER) fprintf(stderr, "mspti: a buffer of %zu bytes is too small\n", size);
            }
            if (!buffer || used + record->size > size)
                sim_count("mspti_dropped", 1);
            else {
                memcpy(buffer + used, record->bytes, record->size);
                used += record->size;
            }
            free(record);
            int64_t full = setting("ASCEND_SIM_MSPTI_FULL", (int64_t)(size / 10 * 8));
            if (buffer && (int64_t)used >= full) {
                hand_over(buffer, size, used);
                buffer = NULL;
            }
            pthread_mutex_lock(&lock);
        }
        if (flush) {
            pthread_mutex_unlock(&lock);
            hand_over(buffer, size, used);
            buffer = NULL;
            pthread_mutex_lock(&lock);
            flushing = false;
            pthread_cond_broadcast(&changed);
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---------------------------------------------------------------- the ABI */

EXPORT int msptiSubscribe(void **subscriber, void *callback, void *userdata) {
    (void)callback, (void)userdata;
    if (!subscriber) return INVALID_PARAMETER;
    if (subscribed || has_fault("subscribed")) return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscribed = true, kernels_told = 0; /* so that faults hit the same kernels of every recording */
    *subscriber = &subscribed;
    return SUCCESS;
}

EXPORT int msptiUnsubscribe(void *subscriber) {
    if (subscriber != &subscribed || !subscribed) return INVALID_PARAMETER;
    subscribed = false;
    return SUCCESS;
}

/* Callbacks need the library to be loaded before all others. */
EXPORT int msptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t id) {
    (void)on, (void)subscriber, (void)domain, (void)id;
    return WITHOUT_LD_PRELOAD;
}

EXPORT int msptiEnableDomain(uint32_t on, void *subscriber, uint32_t domain) {
    (void)on, (void)subscriber, (void)domain;
    return WITHOUT_LD_PRELOAD;
}

EXPORT int msptiActivityRegisterCallbacks(RequestFunction asked, CompleteFunction done) {
    if (!asked || !done) return INVALID_PARAMETER;
    request = asked;
    complete = done;
    return SUCCESS;
}

EXPORT int msptiActivityEnable(uint32_t kind) {
    if (!kind || kind > KIND_RUNTIME_API || (has_fault("old") && kind > KIND_EXTERNAL_CORRELATION)) return INVALID_PARAMETER;
    if (!subscribed || !request) return INVALID_PARAMETER;
    if (has_fault("offline")) return DEVICE_OFFLINE;
    if (kind == KIND_HCCL || (kind >= KIND_MEMORY && kind <= KIND_MEMCPY)) return WITHOUT_LD_PRELOAD;
    pthread_mutex_lock(&lock);
    enabled |= 1u << kind;
    if (!running) {
        pthread_t thread;
        running = true;
        pthread_create(&thread, NULL, deliver, NULL);
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&lock);
    sim_watch(&watch);
    return SUCCESS;
}

EXPORT int msptiActivityDisable(uint32_t kind) {
    if (!kind || kind > KIND_RUNTIME_API) return INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    enabled &= ~(1u << kind);
    if (!enabled) sim_watch(NULL);
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT bool msptiActivityIsEnabled(uint32_t kind) { return enabled & 1u << kind; }

EXPORT int msptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    if (running) {
        flushing = true;
        pthread_cond_broadcast(&changed);
        while (flushing) pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

EXPORT int msptiActivityFlushPeriod(uint32_t milliseconds) {
    (void)milliseconds;
    return SUCCESS;
}

/* Keeps its place in the thread, and looks at neither the buffer nor `*record`. */
EXPORT int msptiActivityGetNextRecord(uint8_t *buffer, size_t size, uint8_t **record) {
    static _Thread_local size_t at;
    if (!buffer || !record) return INVALID_PARAMETER;
    if (at + 8 > size) {
        at = 0;
        return MAX_LIMIT_REACHED;
    }
    static const uint32_t sizes[] = {0, sizeof(Marker), sizeof(KernelRecord), sizeof(Api), 56, 64, 56, 56, sizeof(External),
                                     sizeof(Communication), sizeof(Api), sizeof(Api), sizeof(Api)};
    uint32_t kind = *(uint32_t *)(buffer + at);
    if (!kind || kind > KIND_RUNTIME_API) return INNER;
    *record = buffer + at;
    at += sizes[kind];
    return SUCCESS;
}

EXPORT int msptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
    if (!kind || kind > 4 || external_count[kind] == 64) return INVALID_PARAMETER;
    external[kind][external_count[kind]++] = id;
    return SUCCESS;
}

EXPORT int msptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *id) {
    if (!kind || kind > 4 || !id) return INVALID_PARAMETER; /* the header allows NULL */
    if (!external_count[kind]) return QUEUE_EMPTY;
    *id = external[kind][--external_count[kind]];
    return SUCCESS;
}

EXPORT int msptiActivityEnableMarkerDomain(const char *name) { return name ? SUCCESS : INVALID_PARAMETER; }

EXPORT int msptiActivityDisableMarkerDomain(const char *name) { return name ? SUCCESS : INVALID_PARAMETER; }
