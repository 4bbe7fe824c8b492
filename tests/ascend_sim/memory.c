/* Device memory: addresses in a range that the host may not touch, and the bytes behind them in a range it may not see. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

#define UNIT 512 /* granularity of device blocks */

enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE };

typedef struct Block {
    int64_t offset, size; /* size is rounded up to units */
    struct Block *next;   /* by address */
} Block;

typedef struct Memory {
    char *addresses; /* PROT_NONE: what the program gets */
    char *bytes;     /* what kernels use */
    int64_t size, used;
    uint32_t *owner; /* per unit: number of the block alive there, 0: none */
    Block *blocks;
} Memory;

static Memory memories[MAX_DEVICES];
static uint32_t last_block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Memory *memory_of(int device) {
    Memory *memory = &memories[device];
    if (memory->size) return memory;
    const char *wanted = getenv("ASCEND_SIM_MEMORY");
    int64_t size = wanted ? atoll(wanted) : (int64_t)4 << 30;
    int64_t units = (size + UNIT - 1) / UNIT;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    memory->addresses = mmap(NULL, (size_t)(units * UNIT), PROT_NONE, flags, -1, 0);
    memory->bytes = mmap(NULL, (size_t)(units * UNIT), PROT_READ | PROT_WRITE, flags, -1, 0);
    memory->owner = mmap(NULL, (size_t)units * sizeof(uint32_t), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory->addresses == MAP_FAILED || memory->bytes == MAP_FAILED || memory->owner == MAP_FAILED) abort();
    memory->size = units * UNIT;
    return memory;
}

static Memory *memory_at(const void *address) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        Memory *memory = &memories[i];
        const char *at = address;
        if (memory->size && at >= memory->addresses && at < memory->addresses + memory->size) return memory;
    }
    return NULL;
}

/* The bytes behind a device address, or NULL if the range is not inside one living block. */
EXPORT char *sim_host_view(const void *address, uint64_t size) {
    Memory *memory = memory_at(address);
    if (!memory) return NULL;
    int64_t offset = (const char *)address - memory->addresses;
    int64_t end = offset + (int64_t)(size ? size : 1) - 1;
    if (end >= memory->size) return NULL;
    uint32_t owner = memory->owner[offset / UNIT];
    if (!owner || memory->owner[end / UNIT] != owner) return NULL;
    return memory->bytes + offset;
}

void device_memory(int device, size_t *unused, size_t *total) {
    pthread_mutex_lock(&lock);
    Memory *memory = memory_of(device);
    int64_t limit = memory->size;
    if (fault.memory_limit >= 0 && fault.memory_limit < limit) limit = fault.memory_limit;
    *total = (size_t)limit;
    *unused = (size_t)(limit - memory->used);
    pthread_mutex_unlock(&lock);
}

EXPORT aclError aclrtMalloc(void **address, size_t size, int policy) {
    (void)policy;
    int code = need_device();
    if (code) return code;
    if (!size) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "aclrtMalloc of 0 bytes");
    pthread_mutex_lock(&lock);
    Memory *memory = memory_of(current_device);
    int64_t wanted = ((int64_t)size + UNIT - 1) / UNIT * UNIT;
    int64_t limit = fault.memory_limit >= 0 ? fault.memory_limit : memory->size;
    Block **link = &memory->blocks;
    int64_t offset = 0;
    for (; *link && (*link)->offset - offset < wanted; link = &(*link)->next) offset = (*link)->offset + (*link)->size;
    if (memory->used + wanted > limit || offset + wanted > memory->size) {
        int64_t used = memory->used;
        pthread_mutex_unlock(&lock);
        return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "no room for %zu bytes: %lld of %lld are used", size,
                        (long long)used, (long long)limit);
    }
    Block *block = malloc(sizeof *block);
    *block = (Block){offset, wanted, *link};
    *link = block;
    memory->used += wanted;
    uint32_t number = ++last_block;
    for (int64_t unit = offset / UNIT; unit < (offset + wanted) / UNIT; unit++) memory->owner[unit] = number;
    pthread_mutex_unlock(&lock);
    sim_count("blocks", 1);
    sim_count("bytes", wanted);
    *address = memory->addresses + offset;
    return ACL_SUCCESS;
}

EXPORT aclError aclrtFree(void *address) {
    pthread_mutex_lock(&lock);
    Memory *memory = memory_at(address);
    Block **link = memory ? &memory->blocks : NULL;
    while (link && *link && memory->addresses + (*link)->offset != (char *)address) link = &(*link)->next;
    Block *block = link ? *link : NULL;
    if (block) {
        *link = block->next;
        memory->used -= block->size;
        for (int64_t unit = block->offset / UNIT; unit < (block->offset + block->size) / UNIT; unit++)
            memory->owner[unit] = 0;
        sim_count("blocks", -1);
        sim_count("bytes", -block->size);
    }
    pthread_mutex_unlock(&lock);
    free(block);
    int code = sim_enter();
    if (code) return code; /* the memory of a lost device is gone with it */
    return block ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no block of the device", address);
}

EXPORT aclError aclrtMallocHost(void **address, size_t size) {
    int code = need_device();
    if (code) return code;
    *address = aligned_alloc(UNIT, (size + UNIT - 1) / UNIT * UNIT);
    if (!*address) return sim_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory for %zu bytes", size);
    sim_count("host_blocks", 1);
    return ACL_SUCCESS;
}

EXPORT aclError aclrtFreeHost(void *address) {
    free(address);
    sim_count("host_blocks", -1);
    return sim_enter();
}

EXPORT aclError aclrtGetMemInfo(int attribute, size_t *unused, size_t *total) {
    (void)attribute;
    int code = need_device();
    if (code) return code;
    device_memory(current_device, unused, total);
    return ACL_SUCCESS;
}

/* ---------------------------------------------------------------- copies and fills */

typedef struct Transfer {
    char *to;
    const char *from; /* NULL: a fill */
    size_t size;
    int kind, value;
} Transfer;

static int transfer(const Transfer *t) {
    bool to_device = t->from ? t->kind == HOST_TO_DEVICE || t->kind == DEVICE_TO_DEVICE : memory_at(t->to) != NULL;
    bool from_device = t->from && (t->kind == DEVICE_TO_HOST || t->kind == DEVICE_TO_DEVICE);
    char *to = to_device ? sim_host_view(t->to, t->size) : t->to;
    const char *from = from_device ? sim_host_view(t->from, t->size) : t->from;
    if (!to || (t->from && !from))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "copy of %zu bytes outside of a device block", t->size);
    if (t->from)
        memmove(to, from, t->size);
    else
        memset(to, t->value, t->size);
    sim_count("copies", 1);
    return ACL_SUCCESS;
}

static int run_transfer(void *payload) { return transfer(payload); }

static int check_transfer(const Transfer *t, size_t room) {
    if (t->size > room) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes into a room of %zu", t->size, room);
    if (!t->from) return ACL_SUCCESS;
    if (t->kind < HOST_TO_HOST || t->kind > DEVICE_TO_DEVICE)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "no copy of kind %d", t->kind);
    bool to_device = t->kind == HOST_TO_DEVICE || t->kind == DEVICE_TO_DEVICE;
    bool from_device = t->kind == DEVICE_TO_HOST || t->kind == DEVICE_TO_DEVICE;
    if (to_device != (memory_at(t->to) != NULL) || from_device != (memory_at(t->from) != NULL))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "a copy of kind %d from %p to %p", t->kind, (void *)t->from, t->to);
    return ACL_SUCCESS;
}

static int transfer_now(Transfer t, size_t room) {
    int code = need_device();
    if (!code) code = check_transfer(&t, room);
    return code ? code : transfer(&t);
}

static int transfer_later(Transfer t, size_t room, aclrtStream stream) {
    int code = need_device();
    if (!code) code = check_transfer(&t, room);
    if (code) return code;
    if (t.from && t.kind == DEVICE_TO_DEVICE && (((uintptr_t)t.to | (uintptr_t)t.from) & 63))
        return sim_fail(ACL_ERROR_RT_ADDR_UNALIGNED, "a copy on the device needs addresses that are multiples of 64");
    int64_t start = sim_api_begin();
    Transfer *payload = malloc(sizeof *payload);
    *payload = t;
    code = sim_enqueue(stream, t.from ? "memcpy" : "memset", run_transfer, payload, free);
    sim_api_end("", t.from ? "aclrtMemcpyAsync" : "aclrtMemsetAsync", start);
    return code;
}

EXPORT aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int kind) {
    return transfer_now((Transfer){to, from, size, kind, 0}, room);
}

EXPORT aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int kind, aclrtStream stream) {
    return transfer_later((Transfer){to, from, size, kind, 0}, room, stream);
}

EXPORT aclError aclrtMemset(void *to, size_t room, int32_t value, size_t size) {
    return transfer_now((Transfer){to, NULL, size, 0, value}, room);
}

EXPORT aclError aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t size, aclrtStream stream) {
    return transfer_later((Transfer){to, NULL, size, 0, value}, room, stream);
}
