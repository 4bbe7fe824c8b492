/* libms_tools_ext: marks and ranges of the program's, on the host and, given a stream, on the device. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { INSTANT = 1, START = 2, END = 4, WITH_DEVICE = 8 }; /* times WITH_DEVICE: the same with a stream */

typedef struct Domain {
    char *name;
} Domain;

static _Atomic uint64_t marks;

typedef struct Queued {
    SimMark mark;
    char name[128];
    char domain[64];
} Queued;

static int run_mark(void *given) {
    Queued *queued = given;
    queued->mark.time = sim_wall_clock();
    sim_mark(&queued->mark);
    return ACL_SUCCESS;
}

static void tell(uint32_t flag, uint64_t id, const char *message, const char *domain, aclrtStream stream) {
    if (stream) flag *= WITH_DEVICE;
    SimMark mark = {flag, 0, sim_wall_clock(), id, (uint32_t)getpid(), (uint32_t)gettid(), message, domain};
    sim_mark(&mark);
    if (!stream) return;
    Queued *queued = calloc(1, sizeof *queued);
    strncpy(queued->name, message, sizeof queued->name - 1);
    strncpy(queued->domain, domain, sizeof queued->domain - 1);
    queued->mark = (SimMark){flag, 1, 0, id, 0, 0, queued->name, queued->domain};
    sim_place(stream, &queued->mark.first, &queued->mark.second);
    sim_enqueue(stream, "mark", run_mark, queued, free);
}

/* The stream of a range that is open, since its end names only the range. */
static struct {
    uint64_t id;
    aclrtStream stream;
} open_ranges[1024];

static uint64_t start_range(const char *message, const char *domain, aclrtStream stream) {
    uint64_t id = ++marks;
    open_ranges[id % 1024].id = id;
    open_ranges[id % 1024].stream = stream;
    tell(START, id, message, domain, stream);
    return id;
}

static void end_range(uint64_t id, const char *domain) {
    bool known = open_ranges[id % 1024].id == id;
    tell(END, id, "", domain, known ? open_ranges[id % 1024].stream : NULL);
}

EXPORT void mstxMarkA(const char *message, aclrtStream stream) { tell(INSTANT, ++marks, message, "default", stream); }

EXPORT uint64_t mstxRangeStartA(const char *message, aclrtStream stream) { return start_range(message, "default", stream); }

EXPORT void mstxRangeEnd(uint64_t id) { end_range(id, "default"); }

EXPORT Domain *mstxDomainCreateA(const char *name) {
    Domain *domain = malloc(sizeof *domain);
    domain->name = strdup(name);
    return domain;
}

EXPORT void mstxDomainDestroy(Domain *domain) {
    free(domain->name);
    free(domain);
}

EXPORT void mstxDomainMarkA(Domain *domain, const char *message, aclrtStream stream) {
    tell(INSTANT, ++marks, message, domain->name, stream);
}

EXPORT uint64_t mstxDomainRangeStartA(Domain *domain, const char *message, aclrtStream stream) {
    return start_range(message, domain->name, stream);
}

EXPORT void mstxDomainRangeEnd(Domain *domain, uint64_t id) { end_range(id, domain->name); }
