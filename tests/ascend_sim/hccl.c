/* libhccl: collectives between processes of one machine. A communicator is a piece of shared memory with a queue of bytes for
 * each pair of ranks; a call is a task of its stream, which fills and empties these queues until all of its parts are through.
 * Before a collective the ranks compare what they call, as the library does: other arguments are its error EI0005. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

enum { HCCL_SUCCESS = 0, HCCL_E_PARA = 1, HCCL_E_PTR = 2, HCCL_E_MEMORY = 3, HCCL_E_NOT_SUPPORT = 5, HCCL_E_SYSCALL = 8, HCCL_E_TIMEOUT = 9 };
enum { INT8, INT16, INT32, FP16, FP32, INT64, UINT64, UINT8, UINT16, UINT32, FP64, BFP16, DTYPES };
enum { SUM, PROD, MAX, MIN, REDUCTIONS };
enum { TASK_TIMEOUT = 107020, INCONSISTENT = 507899 };

#define MAX_RANKS 16
#define ROOT_INFO_BYTES 4108
#define ROOM (64 << 10) /* of a queue */

typedef int HcclResult;
typedef struct Call Call;

/* Bytes from one rank to another: `put` and `taken` only grow. */
typedef struct Queue {
    _Atomic uint64_t put, taken;
    char bytes[ROOM];
} Queue;

typedef struct Shared {
    _Atomic uint32_t attached;
    Queue queues[]; /* [from * size + to] */
} Shared;

typedef struct Comm {
    uint32_t rank, size;
    char name[64];
    Shared *shared;
    size_t bytes;
    _Atomic int error; /* of a call that ran */
} Comm;

typedef struct Item { /* HcclSendRecvItem */
    int type; /* 0: send */
    void *buffer;
    uint64_t count;
    int dtype;
    uint32_t peer;
} Item;

/* What must be the same on all ranks. */
typedef struct Arguments {
    char name[24];
    uint64_t count;
    int32_t dtype, op, root, is_message;
} Arguments;

/* A part of a call: bytes to or from another rank. */
typedef struct Part {
    bool is_sent;
    uint32_t peer;
    char *bytes;
    uint64_t size, done;
} Part;

struct Call {
    Comm *comm;
    Arguments arguments;
    void *sent, *received; /* device addresses */
    uint64_t counts[4][MAX_RANKS]; /* of HcclAlltoAllV: sent, their offsets, received, theirs */
    uint32_t items_count;
    Item *items;
    int (*run)(Call *call);
};

static const uint32_t item_sizes[DTYPES] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2};

/* ---------------------------------------------------------------- moving bytes */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double limit_s(const char *variable, double usual) {
    const char *given = getenv(variable);
    return given && atof(given) > 0 ? atof(given) : usual;
}

/* Moves what can be moved of a part now; whether anything was. */
static bool advance(Comm *comm, Part *part) {
    uint32_t from = part->is_sent ? comm->rank : part->peer, to = part->is_sent ? part->peer : comm->rank;
    Queue *queue = &comm->shared->queues[from * comm->size + to];
    uint64_t put = queue->put, taken = queue->taken, left = part->size - part->done;
    uint64_t count = part->is_sent ? ROOM - (put - taken) : put - taken;
    if (count > left) count = left;
    for (uint64_t i = 0; i < count;) {
        uint64_t at = ((part->is_sent ? put : taken) + i) % ROOM, piece = ROOM - at < count - i ? ROOM - at : count - i;
        if (part->is_sent)
            memcpy(queue->bytes + at, part->bytes + part->done + i, piece);
        else
            memcpy(part->bytes + part->done + i, queue->bytes + at, piece);
        i += piece;
    }
    part->done += count;
    if (part->is_sent)
        queue->put = put + count;
    else
        queue->taken = taken + count;
    return count > 0;
}

/* Moves all parts. Parts of one queue go one after another. */
static int move(Call *call, Part *parts, uint32_t count) {
    double end = now_s() + limit_s("HCCL_EXEC_TIMEOUT", 1836);
    for (int idle = 0;;) {
        bool waits = false, moved = false;
        bool busy[2][MAX_RANKS] = {{false}};
        for (uint32_t i = 0; i < count; i++) {
            Part *part = &parts[i];
            if (part->done == part->size || busy[part->is_sent][part->peer]) continue;
            moved |= advance(call->comm, part);
            if (part->done < part->size) waits = busy[part->is_sent][part->peer] = true;
        }
        if (!waits) return ACL_SUCCESS;
        if (sim_is_aborted()) return sim_fail(TASK_TIMEOUT, "%s was aborted", call->arguments.name);
        if (now_s() > end)
            return sim_fail(TASK_TIMEOUT, "EI0002: %s of rank %u in %s: the notify wait timed out", call->arguments.name,
                            call->comm->rank, call->comm->name);
        idle = moved ? 0 : idle + 1;
        if (idle < 100)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, 100000}, NULL);
    }
}

/* Compares the arguments of all ranks. */
static int agree(Call *call) {
    Comm *comm = call->comm;
    Arguments others[MAX_RANKS];
    Part parts[2 * MAX_RANKS];
    uint32_t count = 0;
    for (uint32_t peer = 0; peer < comm->size; peer++) {
        if (peer == comm->rank) continue;
        parts[count++] = (Part){true, peer, (char *)&call->arguments, sizeof(Arguments), 0};
        parts[count++] = (Part){false, peer, (char *)&others[peer], sizeof(Arguments), 0};
    }
    int code = move(call, parts, count);
    for (uint32_t peer = 0; peer < comm->size && !code; peer++) {
        const Arguments *mine = &call->arguments, *other = &others[peer];
        if (peer != comm->rank && memcmp(mine, other, sizeof *mine))
            code = sim_fail(INCONSISTENT,
                            "EI0005: the arguments for collective communication are inconsistent between ranks: rank %u calls "
                            "%s (count %llu, type %d, op %d, root %d), rank %u %s (count %llu, type %d, op %d, root %d)",
                            comm->rank, mine->name, (unsigned long long)mine->count, mine->dtype, mine->op, mine->root, peer,
                            other->name, (unsigned long long)other->count, other->dtype, other->op, other->root);
    }
    return code;
}

/* ---------------------------------------------------------------- reductions */

static float from_half(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    union { uint32_t bits; float value; } made;
    if (exponent == 31) made.bits = sign | 0x7f800000 | fraction << 13;
    else if (exponent) made.bits = sign | (exponent + 112) << 23 | fraction << 13;
    else {
        made.value = (float)fraction * 0x1p-24f;
        made.bits |= sign;
    }
    return made.value;
}

static uint16_t to_half(float value) {
    union { float value; uint32_t bits; } given = {value};
    uint16_t sign = given.bits >> 16 & 0x8000;
    uint32_t rest = given.bits & 0x7fffffff;
    if (rest > 0x7f800000) return sign | 0x7e00;
    if (rest >= 0x477ff000) return sign | 0x7c00;
    given.bits = rest;
    if (rest < 0x38800000) { /* subnormal: in units of the least one */
        given.value += 0.5f; /* whose last bit is 2^-24, so that the addition rounds */
        return sign | (uint16_t)(given.bits - 0x3f000000);
    }
    uint32_t odd = rest >> 13 & 1;
    return sign | (uint16_t)((rest + 0xc8000fff + odd) >> 13);
}

static float from_bfloat(uint16_t bits) {
    union { uint32_t bits; float value; } made = {(uint32_t)bits << 16};
    return made.value;
}

static uint16_t to_bfloat(float value) {
    union { float value; uint32_t bits; } given = {value};
    if (value != value) return 0x7fc0;
    return (uint16_t)((given.bits + 0x7fff + (given.bits >> 16 & 1)) >> 16);
}

#define COMBINE(type, read, write)                                                                           \
    for (uint64_t i = 0; i < count; i++) {                                                                   \
        type a = read(((const element *)into)[i]), b = read(((const element *)from)[i]);                     \
        ((element *)into)[i] = write((op == SUM ? a + b : op == PROD ? a * b : op == MAX ? (a > b ? a : b) : (a < b ? a : b))); \
    }                                                                                                        \
    break;

static void combine(char *into, const char *from, uint64_t count, int dtype, int op) {
    switch (dtype) {
        case INT8: { typedef int8_t element; COMBINE(int64_t, , (int8_t)) }
        case INT16: { typedef int16_t element; COMBINE(int64_t, , (int16_t)) }
        case INT32: { typedef int32_t element; COMBINE(int64_t, , (int32_t)) }
        case INT64: { typedef int64_t element; COMBINE(uint64_t, , (int64_t)) }
        case FP32: { typedef float element; COMBINE(float, , ) }
        case FP16: { typedef uint16_t element; COMBINE(float, from_half, to_half) }
        case BFP16: { typedef uint16_t element; COMBINE(float, from_bfloat, to_bfloat) }
    }
}

/* ---------------------------------------------------------------- the calls, on the stream's thread */

static char *view(Call *call, const void *address, uint64_t count) {
    return count ? sim_host_view(address, count * item_sizes[call->arguments.dtype]) : NULL;
}

/* Sends `sent[peer]` to each rank and receives `received[peer]`; a null pointer is nothing. */
static int exchange(Call *call, char **sent, const uint64_t *sent_sizes, char **received, const uint64_t *received_sizes) {
    Part parts[2 * MAX_RANKS];
    uint32_t count = 0, mine = call->comm->rank;
    for (uint32_t peer = 0; peer < call->comm->size; peer++) {
        if (peer == mine) continue;
        if (sent[peer]) parts[count++] = (Part){true, peer, sent[peer], sent_sizes[peer], 0};
        if (received[peer]) parts[count++] = (Part){false, peer, received[peer], received_sizes[peer], 0};
    }
    if (sent[mine] && received[mine] && sent[mine] != received[mine]) memmove(received[mine], sent[mine], sent_sizes[mine]);
    return move(call, parts, count);
}

/* Every rank named by `takes` gets the reduction of the others' blocks for it, `stride` bytes apart, in the order of ranks. */
static int reduce_blocks(Call *call, char *sent, uint64_t stride, bool all, char *received) {
    uint32_t size = call->comm->size, mine = call->comm->rank;
    bool takes = all || mine == (uint32_t)call->arguments.root;
    uint64_t bytes = call->arguments.count * item_sizes[call->arguments.dtype], sizes[MAX_RANKS] = {0};
    char *blocks = takes ? malloc(size * bytes + 1) : NULL, *to[MAX_RANKS], *from[MAX_RANKS];
    for (uint32_t peer = 0; peer < size; peer++) {
        sizes[peer] = bytes;
        to[peer] = all || peer == (uint32_t)call->arguments.root ? sent + peer * stride : NULL;
        from[peer] = takes ? blocks + peer * bytes : NULL;
    }
    int code = exchange(call, to, sizes, from, sizes);
    if (!code && takes) {
        for (uint32_t peer = 1; peer < size; peer++)
            combine(blocks, blocks + peer * bytes, call->arguments.count, call->arguments.dtype, call->arguments.op);
        memcpy(received, blocks, bytes);
    }
    free(blocks);
    return code;
}

static int run_all_reduce(Call *call) {
    uint64_t count = call->arguments.count;
    return count ? reduce_blocks(call, view(call, call->sent, count), 0, true, view(call, call->received, count)) : 0;
}

static int run_reduce(Call *call) {
    uint64_t count = call->arguments.count;
    bool takes = call->comm->rank == (uint32_t)call->arguments.root;
    return count ? reduce_blocks(call, view(call, call->sent, count), 0, false, takes ? view(call, call->received, count) : NULL) : 0;
}

static int run_reduce_scatter(Call *call) {
    uint64_t count = call->arguments.count, bytes = count * item_sizes[call->arguments.dtype];
    if (!count) return 0;
    return reduce_blocks(call, view(call, call->sent, count * call->comm->size), bytes, true, view(call, call->received, count));
}

/* Broadcast, all-gather and scatter: who sends which block, and where it goes. */
static int run_blocks(Call *call) {
    uint32_t size = call->comm->size, mine = call->comm->rank, root = (uint32_t)call->arguments.root;
    uint64_t count = call->arguments.count, bytes = count * item_sizes[call->arguments.dtype], sizes[MAX_RANKS] = {0};
    char *to[MAX_RANKS] = {0}, *from[MAX_RANKS] = {0};
    bool gathers = !strcmp(call->arguments.name, "HcclAllGather"), scatters = !strcmp(call->arguments.name, "HcclScatter");
    if (!count) return 0;
    char *sent = gathers || mine == root ? view(call, call->sent, scatters ? count * size : count) : NULL;
    char *received = view(call, call->received, gathers ? count * size : count);
    for (uint32_t peer = 0; peer < size; peer++) {
        sizes[peer] = bytes;
        if (sent) to[peer] = sent + (scatters ? peer * bytes : 0);
        if (gathers || peer == root) from[peer] = received + (gathers ? peer * bytes : 0);
    }
    return exchange(call, to, sizes, from, sizes);
}

static int run_all_to_all(Call *call) {
    uint32_t size = call->comm->size, width = item_sizes[call->arguments.dtype];
    char *to[MAX_RANKS] = {0}, *from[MAX_RANKS] = {0};
    uint64_t sizes[2][MAX_RANKS] = {{0}};
    for (uint32_t peer = 0; peer < size; peer++) {
        for (int side = 0; side < 2; side++) {
            const uint64_t *counts = call->counts[2 * side], *offsets = call->counts[2 * side + 1];
            sizes[side][peer] = counts[peer] * width;
            if (!counts[peer]) continue;
            char *start = (char *)(side ? call->received : call->sent) + offsets[peer] * width;
            (side ? from : to)[peer] = sim_host_view(start, sizes[side][peer]);
        }
    }
    return exchange(call, to, sizes[0], from, sizes[1]);
}

static int run_barrier(Call *call) {
    (void)call;
    return ACL_SUCCESS; /* to have agreed is all */
}

/* Messages: each has its length in front, so that another one than expected is told. */
static int run_messages(Call *call) {
    Comm *comm = call->comm;
    Part *parts = calloc(2 * call->items_count, sizeof *parts);
    uint64_t *lengths = calloc(call->items_count, sizeof *lengths);
    int code = ACL_SUCCESS;
    for (uint32_t i = 0; i < call->items_count; i++) {
        const Item *item = &call->items[i];
        uint64_t size = item->count * item_sizes[item->dtype];
        bool is_sent = !item->type;
        lengths[i] = is_sent ? size : 0;
        parts[2 * i] = (Part){is_sent, item->peer, (char *)&lengths[i], sizeof *lengths, 0};
        parts[2 * i + 1] = (Part){is_sent, item->peer, size ? sim_host_view(item->buffer, size) : NULL, size, 0};
    }
    code = move(call, parts, 2 * call->items_count);
    for (uint32_t i = 0; i < call->items_count && !code; i++)
        if (lengths[i] != parts[2 * i + 1].size)
            code = sim_fail(INCONSISTENT, "EI0005: rank %u sent %llu bytes to rank %u, which expected %llu", call->items[i].peer,
                            (unsigned long long)lengths[i], comm->rank, (unsigned long long)parts[2 * i + 1].size);
    free(parts);
    free(lengths);
    return code;
}

static int run_call(void *given) {
    Call *call = given;
    *sim_talk() = (SimTalk){call->comm->name, call->arguments.count, (uint32_t)call->arguments.dtype};
    int code = call->arguments.is_message ? ACL_SUCCESS : agree(call);
    if (!code) code = call->run(call);
    if (code) call->comm->error = HCCL_E_TIMEOUT;
    return code;
}

static void drop_call(void *given) {
    Call *call = given;
    free(call->items);
    free(call);
}

static HcclResult begin(Comm *comm, const char *name, uint64_t count, int dtype, int op, int root, int (*run)(Call *), const void *sent,
                        const void *received, aclrtStream stream, Call *more) {
    if (!comm || !stream) return sim_fail(HCCL_E_PTR, "%s: no communicator or no stream", name);
    if (dtype < 0 || dtype >= DTYPES || op < 0 || op >= REDUCTIONS || root < 0 || (uint32_t)root >= comm->size)
        return sim_fail(HCCL_E_PARA, "EI0003: %s: no data type %d, reduction %d or root %d", name, dtype, op, root);
    bool reduces = strstr(name, "Reduce") != NULL;
    if (reduces && (dtype == UINT8 || dtype == UINT16 || dtype == UINT32 || dtype == UINT64 || dtype == FP64))
        return sim_fail(HCCL_E_NOT_SUPPORT, "EI0003: %s does not support the data type %d", name, dtype);
    int64_t start = sim_api_begin();
    Call *call = more ? more : calloc(1, sizeof *call);
    call->comm = comm;
    snprintf(call->arguments.name, sizeof call->arguments.name, "%s", name);
    call->arguments.count = count, call->arguments.dtype = dtype, call->arguments.op = op, call->arguments.root = root;
    call->arguments.is_message = run == run_messages;
    call->sent = (void *)sent, call->received = (void *)received, call->run = run;
    int code = sim_enqueue(stream, name, run_call, call, drop_call);
    sim_api_end("", name, start);
    return code;
}

/* ---------------------------------------------------------------- the ABI */

EXPORT HcclResult HcclGetRootInfo(char *info) {
    static _Atomic uint32_t made;
    if (!info) return HCCL_E_PTR;
    memset(info, 0, ROOT_INFO_BYTES);
    snprintf(info, ROOT_INFO_BYTES, "/ascend_sim_hccl_%d_%u_%llx", getpid(), ++made, (unsigned long long)sim_wall_clock());
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclCommInitRootInfo(uint32_t size, const char *info, uint32_t rank, Comm **made) {
    if (!info || !made) return HCCL_E_PTR;
    if (!size || size > MAX_RANKS || rank >= size) return sim_fail(HCCL_E_PARA, "EI0003: rank %u of %u", rank, size);
    size_t bytes = sizeof(Shared) + sizeof(Queue) * size * size;
    int file = shm_open(info, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)bytes)) return sim_fail(HCCL_E_SYSCALL, "%s: %s", info, strerror(errno));
    Shared *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) return sim_fail(HCCL_E_MEMORY, "%s: %s", info, strerror(errno));
    shared->attached++;
    double end = now_s() + limit_s("HCCL_CONNECT_TIMEOUT", 120);
    while (shared->attached < size) {
        if (now_s() > end) {
            uint32_t came = shared->attached;
            munmap(shared, bytes);
            shm_unlink(info);
            return sim_fail(HCCL_E_TIMEOUT, "EI0006: %u of %u ranks came within the time of HCCL_CONNECT_TIMEOUT", came, size);
        }
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    shm_unlink(info); /* all have it: a process that is killed leaves nothing behind */
    Comm *comm = calloc(1, sizeof *comm);
    *comm = (Comm){rank, size, "", shared, bytes, 0};
    snprintf(comm->name, sizeof comm->name, "%s", info + strlen("/ascend_sim_"));
    *made = comm;
    sim_count("communicators", 1);
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclCommDestroy(Comm *comm) {
    if (!comm) return HCCL_E_PTR;
    munmap(comm->shared, comm->bytes);
    free(comm);
    sim_count("communicators", -1);
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclGetCommName(Comm *comm, char *name) {
    if (!comm || !name) return HCCL_E_PTR;
    strcpy(name, comm->name);
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclGetCommAsyncError(Comm *comm, HcclResult *error) {
    if (!comm || !error) return HCCL_E_PTR;
    *error = comm->error;
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclGetRankSize(Comm *comm, uint32_t *size) {
    if (!comm || !size) return HCCL_E_PTR;
    *size = comm->size;
    return HCCL_SUCCESS;
}

EXPORT HcclResult HcclGetRankId(Comm *comm, uint32_t *rank) {
    if (!comm || !rank) return HCCL_E_PTR;
    *rank = comm->rank;
    return HCCL_SUCCESS;
}

EXPORT const char *HcclGetErrorString(HcclResult code) {
    static const char *const names[] = {"no error", "parameter error", "empty pointer", "memory error", "internal error",
                                        "not support feature", "not found specific resource", "resource unavailable",
                                        "call system interface error", "timeout"};
    return code >= 0 && code < 10 ? names[code] : "unknown error";
}

EXPORT HcclResult HcclAllReduce(void *sent, void *received, uint64_t count, int dtype, int op, Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclAllReduce", count, dtype, op, 0, run_all_reduce, sent, received, stream, NULL);
}

EXPORT HcclResult HcclReduce(void *sent, void *received, uint64_t count, int dtype, int op, uint32_t root, Comm *comm,
                             aclrtStream stream) {
    return begin(comm, "HcclReduce", count, dtype, op, (int)root, run_reduce, sent, received, stream, NULL);
}

EXPORT HcclResult HcclReduceScatter(void *sent, void *received, uint64_t count, int dtype, int op, Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclReduceScatter", count, dtype, op, 0, run_reduce_scatter, sent, received, stream, NULL);
}

EXPORT HcclResult HcclBroadcast(void *buffer, uint64_t count, int dtype, uint32_t root, Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclBroadcast", count, dtype, 0, (int)root, run_blocks, buffer, buffer, stream, NULL);
}

EXPORT HcclResult HcclScatter(void *sent, void *received, uint64_t count, int dtype, uint32_t root, Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclScatter", count, dtype, 0, (int)root, run_blocks, sent, received, stream, NULL);
}

EXPORT HcclResult HcclAllGather(void *sent, void *received, uint64_t count, int dtype, Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclAllGather", count, dtype, 0, 0, run_blocks, sent, received, stream, NULL);
}

EXPORT HcclResult HcclAlltoAllV(const void *sent, const void *counts, const void *offsets, int dtype, const void *received,
                                const void *received_counts, const void *received_offsets, int received_dtype, Comm *comm,
                                aclrtStream stream) {
    if (dtype != received_dtype) return sim_fail(HCCL_E_PARA, "EI0003: HcclAlltoAllV: data types %d and %d", dtype, received_dtype);
    const void *given[4] = {counts, offsets, received_counts, received_offsets};
    Call *call = calloc(1, sizeof *call);
    for (int i = 0; i < 4; i++) memcpy(call->counts[i], given[i], comm->size * sizeof(uint64_t));
    return begin(comm, "HcclAlltoAllV", 0, dtype, 0, 0, run_all_to_all, sent, received, stream, call);
}

EXPORT HcclResult HcclAlltoAll(const void *sent, uint64_t count, int dtype, const void *received, uint64_t received_count,
                               int received_dtype, Comm *comm, aclrtStream stream) {
    if (dtype != received_dtype || count != received_count) return sim_fail(HCCL_E_PARA, "EI0003: HcclAlltoAll: both sides differ");
    Call *call = calloc(1, sizeof *call);
    for (uint32_t peer = 0; peer < comm->size; peer++) {
        call->counts[0][peer] = call->counts[2][peer] = count;
        call->counts[1][peer] = call->counts[3][peer] = peer * count;
    }
    return begin(comm, "HcclAlltoAll", count, dtype, 0, 0, run_all_to_all, sent, received, stream, call);
}

EXPORT HcclResult HcclBarrier(Comm *comm, aclrtStream stream) {
    return begin(comm, "HcclBarrier", 0, INT8, 0, 0, run_barrier, NULL, NULL, stream, NULL);
}

static HcclResult messages(const char *name, const Item *items, uint32_t count, Comm *comm, aclrtStream stream) {
    uint64_t elements = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].peer >= comm->size || items[i].peer == comm->rank || items[i].dtype < 0 || items[i].dtype >= DTYPES)
            return sim_fail(HCCL_E_PARA, "EI0003: %s: rank %u, data type %d", name, items[i].peer, items[i].dtype);
        elements += items[i].count;
    }
    Call *call = calloc(1, sizeof *call);
    call->items = malloc(count * sizeof *items);
    memcpy(call->items, items, count * sizeof *items);
    call->items_count = count;
    return begin(comm, name, elements, items[0].dtype, 0, 0, run_messages, NULL, NULL, stream, call);
}

EXPORT HcclResult HcclSend(void *buffer, uint64_t count, int dtype, uint32_t peer, Comm *comm, aclrtStream stream) {
    Item item = {0, buffer, count, dtype, peer};
    return messages("HcclSend", &item, 1, comm, stream);
}

EXPORT HcclResult HcclRecv(void *buffer, uint64_t count, int dtype, uint32_t peer, Comm *comm, aclrtStream stream) {
    Item item = {1, buffer, count, dtype, peer};
    return messages("HcclRecv", &item, 1, comm, stream);
}

EXPORT HcclResult HcclBatchSendRecv(Item *items, uint32_t count, Comm *comm, aclrtStream stream) {
    if (!count) return sim_fail(HCCL_E_PARA, "EI0003: HcclBatchSendRecv: no items");
    return messages("HcclBatchSendRecv", items, count, comm, stream);
}
