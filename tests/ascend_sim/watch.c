/* What a profiler's library is told: calls, kernels and marks, while one watches. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

static _Atomic(const SimWatch *) watcher;
static _Atomic uint64_t api_ids;
_Thread_local uint64_t newest_api; /* of this thread: the one that kernels are linked to */

EXPORT SimTalk *sim_talk(void) {
    static _Thread_local SimTalk talk = {"hccl_world_group", 0, 4};
    return &talk;
}

EXPORT void sim_watch(const SimWatch *watch) { watcher = watch; }

EXPORT int64_t sim_wall_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

EXPORT int64_t sim_api_begin(void) {
    if (!watcher) return 0;
    newest_api = ++api_ids;
    return sim_wall_clock();
}

EXPORT void sim_api_end(const char *prefix, const char *name, int64_t start) {
    const SimWatch *watch = watcher;
    if (!watch || !start) return;
    char text[96];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    watch->api(text, newest_api, start, sim_wall_clock());
}

/* Operators have names that begin with a capital; copies, fills and events are no kernels. */
void tell_kernel(const Stream *stream, const Task *task, int64_t start) {
    const SimWatch *watch = watcher;
    if (watch && isupper((unsigned char)task->name[0]))
        watch->kernel(task->name, stream->device, stream->id, task->correlation, start, sim_wall_clock());
}

EXPORT void sim_mark(const SimMark *mark) {
    const SimWatch *watch = watcher;
    if (watch) watch->mark(mark);
}

EXPORT void sim_place(aclrtStream given, uint32_t *device, uint32_t *id) {
    Stream *stream = stream_or_default(given);
    *device = (uint32_t)stream->device;
    *id = (uint32_t)stream->id;
}

/* How many kernels a call of an operator runs: layouts are changed before some of them. */
EXPORT int sim_kernels_of(const char *operator) {
    static const struct {
        const char *name;
        int count;
    } several[] = {{"Mm", 2}, {"Addmm", 2}, {"BatchMatMul", 2}, {"Matmul", 2}, {"Convolution", 3}, {"ConvolutionBackward", 4},
                   {"MaxPool2dWithIndices", 3}, {"MaxPool2dWithIndicesBackward", 4}};
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        if (!strcmp(several[i].name, operator)) return several[i].count;
    return 1;
}
