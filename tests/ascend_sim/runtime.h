/* Inside libascendcl: devices, their memory, streams, and the faults that a test may switch on. */
#ifndef ASCEND_SIM_RUNTIME_H
#define ASCEND_SIM_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "sim.h"

#define MAX_DEVICES 8

typedef struct Fault {
    int64_t memory_limit;      /* oom:<bytes>, -1: none */
    int64_t lost_after;        /* device_lost:<calls>, -1: never */
    char failing_kernel[64];   /* kernel:<name> */
    char hanging_kernel[64];   /* hang:<name> */
    int64_t drift;             /* drift:<parts per million> that the device's clock is too fast */
} Fault;

typedef struct Task {
    const char *name;
    TaskFunction run;
    void *payload;
    void (*drop)(void *);
    uint64_t correlation; /* of the call that put it here */
    struct Task *next;
} Task;

typedef struct Stream {
    int device;
    int32_t id;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Task *first, *last;
    int64_t pending; /* queued and running */
    bool aborted;
    int error; /* of the first task that failed since somebody asked */
    char message[512];
    struct Stream *next;
} Stream;

extern Fault fault;
extern _Atomic bool device_lost;
extern _Thread_local int current_device;

extern _Thread_local uint64_t newest_api;

void read_faults(void);
void tell_kernel(const Stream *stream, const Task *task, int64_t start);
int device_count(void);
int need_device(void);
int64_t device_clock(void);
void deadline_after(struct timespec *when, int32_t milliseconds);
void new_condition(pthread_cond_t *condition);
Stream *stream_or_default(Stream *stream);
void end_streams(int device);
int take_stream_error(Stream *stream);
bool stream_is_alive(const Stream *stream);
bool wait_for(pthread_cond_t *changed, pthread_mutex_t *mutex, int32_t timeout, const struct timespec *deadline);
void wake_streams(void);
void device_memory(int device, size_t *unused, size_t *total);

#endif
