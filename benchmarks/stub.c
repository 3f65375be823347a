/*
 * Shows a directory read-only through FUSE and answers every request from memory: what FUSE itself costs on a machine.
 *
 * When it starts, it reads all names and bytes of the directory. From then on it uses no other file: a request costs what the kernel
 * takes to hand it over and to take the answer, and a copy of the bytes. It speaks the protocol itself, over one of two channels:
 *
 *   dev        /dev/fuse; each worker reads and writes a descriptor of its own (FUSE_DEV_IOC_CLONE)
 *   io_uring   one ring for each possible CPU, each with a thread on that CPU, which serves what is asked there. INIT and FORGET
 *              come over /dev/fuse all the same, and are served by one worker.
 *
 * If there are no rings to be had, it says why and ends with status 1; it never serves the other channel instead. What it was asked so
 * far over each channel is the extended attribute user.operations of the mount's root, as JSON.
 *
 * Opens are left to the kernel (ENOSYS), as pmfs leaves them in page-cache mode. With --opens each is answered, and the pages kept.
 *
 * It stays in the foreground and ends when it is unmounted or sent SIGTERM or SIGINT. Needs root, and for rings Linux 6.14 or newer
 * with /sys/module/fuse/parameters/enable_uring set to Y before the mount.
 *
 * Build: cc -O2 -std=c11 -Wall -Wextra -pthread -o stub stub.c
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- FUSE over io_uring, from protocol 7.42 on: what older headers lack */

#if FUSE_KERNEL_MINOR_VERSION < 42
#define FUSE_OVER_IO_URING (1ULL << 41)

struct fuse_uring_ent_in_out {
    uint64_t flags;
    uint64_t commit_id; /* names the request when its answer is handed in */
    uint32_t payload_sz;
    uint32_t padding;
    uint64_t reserved;
};

struct fuse_uring_req_header {
    char in_out[128]; /* struct fuse_in_header, then struct fuse_out_header */
    char op_in[128];  /* the operation's first argument; the others are in the payload */
    struct fuse_uring_ent_in_out ring_ent_in_out;
};

enum fuse_uring_cmd { FUSE_IO_URING_CMD_REGISTER = 1, FUSE_IO_URING_CMD_COMMIT_AND_FETCH = 2 };

struct fuse_uring_cmd_req {
    uint64_t flags;
    uint64_t commit_id;
    uint16_t qid;
    uint8_t padding[6];
};
#endif

enum {
    PAGE = 4096,
    MAX_READ_PAGES = 256,
    MAX_READ = MAX_READ_PAGES * PAGE,
    REQUEST_SIZE = FUSE_MIN_READ_BUFFER + PAGE, /* nothing is written, so names are the longest */
    MAX_BACKGROUND = 64,
    MAX_THREADS = 1024,
    MAX_DEPTH = 1024,
    OPERATIONS = 64,
    SQE_SIZE = 128,
};

enum channel { DEV, IO_URING, CHANNELS };
static const char *const channel_names[CHANNELS] = {"dev", "io_uring"};

static const char *const operation_names[OPERATIONS] = {
    [FUSE_LOOKUP] = "lookup",           [FUSE_FORGET] = "forget",       [FUSE_GETATTR] = "getattr", [FUSE_OPEN] = "open",
    [FUSE_READ] = "read",               [FUSE_STATFS] = "statfs",       [FUSE_RELEASE] = "release", [FUSE_GETXATTR] = "getxattr",
    [FUSE_OPENDIR] = "opendir",         [FUSE_READDIR] = "readdir",     [FUSE_RELEASEDIR] = "releasedir",
    [FUSE_BATCH_FORGET] = "batchForget", [FUSE_READDIRPLUS] = "readdirplus",
};

struct options {
    enum channel channel;
    int threads;
    int depth;
    uint64_t kept_seconds;
    bool opens;
    const char *directory;
    const char *mountpoint;
};

static struct options options = {.channel = DEV, .threads = 4, .depth = 8, .kept_seconds = 86400};
static atomic_bool mounted;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "stub: %s: %s\n", what, why);
    if (atomic_exchange(&mounted, false))
        umount2(options.mountpoint, MNT_DETACH);
    exit(1);
}

static _Noreturn void die(const char *what)
{
    give_up(what, strerror(errno));
}

/* ---- the tree: a node's number is its place, counted from FUSE_ROOT_ID */

struct node {
    char *name;
    char *content;
    uint64_t size;
    uint64_t parent;
    uint64_t first_child; /* 0: none */
    uint64_t next;        /* of the same directory; 0: the last one */
    bool is_directory;
};

static struct node *nodes;
static size_t node_count, node_capacity;
static uint64_t *table; /* open addressing: numbers of nodes by parent and name, 0 where nothing is */
static size_t table_mask;

static struct node *node_of(uint64_t number)
{
    return number >= FUSE_ROOT_ID && number - FUSE_ROOT_ID < node_count ? &nodes[number - FUSE_ROOT_ID] : NULL;
}

/* FNV-1a. */
static uint64_t hash(uint64_t parent, const char *name)
{
    uint64_t value = 0xcbf29ce484222325u ^ parent;
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 0x100000001b3u;
    return value ^ value >> 32;
}

/* Where a name's number is in the table, or would be. */
static uint64_t *place_of(uint64_t parent, const char *name)
{
    size_t place = hash(parent, name) & table_mask;
    while (table[place] && (node_of(table[place])->parent != parent || strcmp(node_of(table[place])->name, name)))
        place = (place + 1) & table_mask;
    return &table[place];
}

static char *content_of(const char *path, uint64_t size)
{
    char *content = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || content == MAP_FAILED)
        die(path);
    for (uint64_t done = 0; done < size;) {
        ssize_t got = read(file, content + done, size - done);
        if (got <= 0)
            die(path);
        done += (uint64_t)got;
    }
    close(file);
    return content;
}

/* Adds what fts came to; its number. */
static uint64_t add(const FTSENT *entry)
{
    if (node_count == node_capacity) {
        node_capacity = node_capacity ? node_capacity * 2 : 1024;
        nodes = realloc(nodes, node_capacity * sizeof *nodes);
        if (!nodes)
            die("the tree");
    }
    struct node *node = &nodes[node_count++];
    uint64_t number = node_count - 1 + FUSE_ROOT_ID;
    *node = (struct node){.name = strdup(entry->fts_name), .is_directory = entry->fts_info == FTS_D};
    if (!node->is_directory) {
        node->size = (uint64_t)entry->fts_statp->st_size;
        node->content = content_of(entry->fts_path, node->size);
    }
    if (number != FUSE_ROOT_ID) {
        node->parent = (uint64_t)entry->fts_parent->fts_number;
        struct node *parent = node_of(node->parent);
        node->next = parent->first_child;
        parent->first_child = number;
    }
    return number;
}

/* Reads names and bytes of a directory, and enters the names into the table. */
static void load(const char *directory)
{
    char *const roots[] = {(char *)directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!tree)
        die(directory);
    FTSENT *entry;
    while (errno = 0, (entry = fts_read(tree))) {
        if (entry->fts_info == FTS_D || entry->fts_info == FTS_F)
            entry->fts_number = (long)add(entry);
        else if (entry->fts_info != FTS_DP)
            give_up(entry->fts_path, entry->fts_errno ? strerror(entry->fts_errno) : "neither a directory nor a regular file");
    }
    if (errno || !node_count || !nodes[0].is_directory)
        give_up(directory, errno ? strerror(errno) : "not a directory");
    fts_close(tree);
    for (table_mask = 1; table_mask < node_count * 2; table_mask *= 2)
        ;
    table = calloc(table_mask--, sizeof *table);
    if (!table)
        die("the tree");
    for (uint64_t number = FUSE_ROOT_ID + 1; node_of(number); number++)
        *place_of(node_of(number)->parent, node_of(number)->name) = number;
}

/* ---- what was asked */

struct worker {
    pthread_t thread;
    enum channel channel;
    int number;                             /* of the CPU, for a ring */
    atomic_uint_fast64_t asked[OPERATIONS]; /* only this worker writes them */
};

static struct worker *workers;
static int worker_count;

static void count(struct worker *worker, uint32_t opcode)
{
    atomic_uint_fast64_t *asked = &worker->asked[opcode < OPERATIONS ? opcode : 0];
    atomic_store_explicit(asked, atomic_load_explicit(asked, memory_order_relaxed) + 1, memory_order_relaxed);
}

static uint64_t asked_over(enum channel channel, uint32_t opcode)
{
    uint64_t sum = 0;
    for (int i = 0; i < worker_count; i++)
        if (workers[i].channel == channel)
            sum += atomic_load_explicit(&workers[i].asked[opcode], memory_order_relaxed);
    return sum;
}

/* By channel, and by operation what was asked at all; those without a name are "other". */
static size_t write_operations(char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    if (!out)
        return 0;
    for (enum channel channel = DEV; channel < CHANNELS; channel++) {
        uint64_t other = 0;
        fprintf(out, "%s\"%s\": {", channel ? ", " : "{", channel_names[channel]);
        for (uint32_t opcode = 0; opcode < OPERATIONS; opcode++) {
            uint64_t sum = asked_over(channel, opcode);
            if (!operation_names[opcode])
                other += sum;
            else if (sum)
                fprintf(out, "\"%s\": %" PRIu64 ", ", operation_names[opcode], sum);
        }
        fprintf(out, "\"other\": %" PRIu64 "}", other);
    }
    fputc('}', out);
    size_t length = (size_t)ftell(out);
    fclose(out);
    return length;
}

/* ---- requests, however they came */

struct request {
    const struct fuse_in_header *header;
    const void *argument; /* the operation's structure */
    const char *name;     /* what follows it */
    char *room;           /* MAX_READ bytes for the answer; over a ring the name is there, too */
};

struct reply {
    int error;
    const void *body;
    size_t size;
};

static struct reply failure(int error)
{
    return (struct reply){.error = -error};
}

static struct fuse_attr attributes_of(const struct node *node)
{
    return (struct fuse_attr){
        .ino = (uint64_t)(node - nodes) + FUSE_ROOT_ID,
        .size = node->size,
        .blocks = (node->size + 511) / 512,
        .mode = node->is_directory ? S_IFDIR | 0555 : S_IFREG | 0444,
        .nlink = 1,
        .blksize = PAGE,
    };
}

static struct fuse_entry_out entry_of(const struct node *node)
{
    struct fuse_attr attributes = attributes_of(node);
    return (struct fuse_entry_out){
        .nodeid = attributes.ino, .entry_valid = options.kept_seconds, .attr_valid = options.kept_seconds, .attr = attributes};
}

static struct reply in_room(const struct request *request, const void *body, size_t size)
{
    memcpy(request->room, body, size);
    return (struct reply){.body = request->room, .size = size};
}

static struct reply lookup(const struct request *request)
{
    const struct node *node = node_of(*place_of(request->header->nodeid, request->name));
    if (!node)
        return failure(ENOENT);
    struct fuse_entry_out out = entry_of(node);
    return in_room(request, &out, sizeof out);
}

static struct reply getattr(const struct request *request, const struct node *node)
{
    struct fuse_attr_out out = {.attr_valid = options.kept_seconds, .attr = attributes_of(node)};
    return in_room(request, &out, sizeof out);
}

static struct reply opened(const struct request *request)
{
    struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};
    return in_room(request, &out, sizeof out);
}

static struct reply read_file(const struct request *request, const struct node *node)
{
    const struct fuse_read_in *in = request->argument;
    if (node->is_directory)
        return failure(EISDIR);
    if (in->offset >= node->size)
        return (struct reply){0};
    uint64_t left = node->size - in->offset;
    return (struct reply){.body = node->content + in->offset, .size = in->size < left ? in->size : left};
}

/* An entry's offset is the number of the next one, and the root's after the last one. */
static struct reply read_directory(const struct request *request, const struct node *node)
{
    const struct fuse_read_in *in = request->argument;
    const size_t before = request->header->opcode == FUSE_READDIRPLUS ? sizeof(struct fuse_entry_out) : 0;
    const size_t limit = in->size < MAX_READ ? in->size : MAX_READ;
    uint64_t number = in->offset == 0 ? node->first_child : in->offset;
    size_t size = 0;
    while (number && number != FUSE_ROOT_ID && (node = node_of(number))) {
        size_t length = strlen(node->name), needed = before + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
        if (size + needed > limit)
            break;
        char *at = request->room + size;
        memset(at, 0, needed);
        if (before) {
            struct fuse_entry_out entry = entry_of(node);
            memcpy(at, &entry, sizeof entry);
        }
        struct fuse_dirent *dirent = (struct fuse_dirent *)(at + before);
        dirent->ino = number;
        dirent->off = node->next ? node->next : FUSE_ROOT_ID;
        dirent->namelen = (uint32_t)length;
        dirent->type = node->is_directory ? S_IFDIR >> 12 : S_IFREG >> 12;
        memcpy(dirent->name, node->name, length);
        size += needed;
        number = node->next;
    }
    return (struct reply){.body = request->room, .size = size};
}

static struct reply getxattr(const struct request *request)
{
    const struct fuse_getxattr_in *in = request->argument;
    if (request->header->nodeid != FUSE_ROOT_ID || strcmp(request->name, "user.operations"))
        return failure(ENODATA);
    size_t length = write_operations(request->room, PAGE);
    if (in->size && in->size < length)
        return failure(ERANGE);
    if (in->size)
        return (struct reply){.body = request->room, .size = length};
    struct fuse_getxattr_out out = {.size = (uint32_t)length};
    return in_room(request, &out, sizeof out);
}

static bool is_answered(uint32_t opcode)
{
    return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

static struct reply answer(const struct request *request)
{
    const struct node *node = node_of(request->header->nodeid);
    static const struct fuse_statfs_out statistics = {.st = {.bsize = PAGE, .frsize = PAGE, .namelen = 255}};
    if (!node && request->header->opcode != FUSE_DESTROY)
        return failure(ENOENT);
    switch (request->header->opcode) {
    case FUSE_LOOKUP:
        return lookup(request);
    case FUSE_GETATTR:
        return getattr(request, node);
    case FUSE_OPEN:
        return options.opens ? opened(request) : failure(ENOSYS);
    case FUSE_READ:
        return read_file(request, node);
    case FUSE_OPENDIR:
        return opened(request);
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
        return read_directory(request, node);
    case FUSE_STATFS:
        return in_room(request, &statistics, sizeof statistics);
    case FUSE_GETXATTR:
        return getxattr(request);
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_DESTROY:
        return (struct reply){0};
    default: /* among them FLUSH and ACCESS, which the kernel then does by itself */
        return failure(ENOSYS);
    }
}

/* ---- /dev/fuse */

static int device;

/* The file system was unmounted or aborted. */
static void end_of_session(void)
{
    atomic_store(&mounted, false);
    kill(getpid(), SIGTERM);
}

/* Answers INIT, the first request. */
static void greet(void)
{
    static union {
        struct {
            struct fuse_in_header header;
            struct fuse_init_in body;
        } in;
        char room[REQUEST_SIZE];
    } request;
    if (read(device, &request, sizeof request) < 0)
        die("/dev/fuse");
    const struct fuse_init_in *in = &request.in.body;
    if (request.in.header.opcode != FUSE_INIT || in->major != FUSE_KERNEL_VERSION || in->minor < 36)
        give_up("/dev/fuse", "older than Linux 5.17");
    uint64_t wanted = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_DO_READDIRPLUS |
                      FUSE_NO_OPEN_SUPPORT | FUSE_INIT_EXT | (options.channel == IO_URING ? FUSE_OVER_IO_URING : 0);
    uint64_t flags = wanted & (in->flags | (uint64_t)in->flags2 << 32);
    if (options.channel == IO_URING && !(flags & FUSE_OVER_IO_URING))
        give_up("io_uring", "not offered by the kernel: it is older than 6.14, built without it, or /sys/module/fuse/parameters/enable_uring is N");
    struct fuse_init_out body = {
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = in->max_readahead,
        .flags = (uint32_t)flags,
        .flags2 = (uint32_t)(flags >> 32),
        .max_background = MAX_BACKGROUND,
        .congestion_threshold = MAX_BACKGROUND,
        .max_write = PAGE,
        .time_gran = 1,
        .max_pages = MAX_READ_PAGES,
    };
    struct fuse_out_header header = {.len = sizeof header + sizeof body, .unique = request.in.header.unique};
    struct iovec parts[] = {{&header, sizeof header}, {&body, sizeof body}};
    if (writev(device, parts, 2) < 0)
        die("/dev/fuse: INIT");
}

/* What has neither an operation's structure nor a name has both as an empty rest. */
static struct request parse(const char *bytes, char *room)
{
    struct request request = {.header = (const struct fuse_in_header *)bytes, .argument = bytes + sizeof *request.header, .room = room};
    request.name = (const char *)request.argument + (request.header->opcode == FUSE_GETXATTR ? sizeof(struct fuse_getxattr_in) : 0);
    return request;
}

static void *serve_device(void *argument)
{
    struct worker *worker = argument;
    int mine = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    uint32_t session = (uint32_t)device;
    if (mine < 0 || ioctl(mine, FUSE_DEV_IOC_CLONE, &session))
        die("/dev/fuse: a worker's own descriptor");
    char *bytes = aligned_alloc(PAGE, REQUEST_SIZE), *room = aligned_alloc(PAGE, MAX_READ);
    if (!bytes || !room)
        die("a worker's buffers");
    for (;;) {
        if (read(mine, bytes, REQUEST_SIZE) < 0) {
            if (errno == EINTR || errno == EAGAIN || errno == ENOENT) /* the last: the request was interrupted */
                continue;
            if (errno != ENODEV)
                die("/dev/fuse");
            end_of_session();
            return NULL;
        }
        struct request request = parse(bytes, room);
        count(worker, request.header->opcode);
        if (!is_answered(request.header->opcode))
            continue;
        struct reply reply = answer(&request);
        struct fuse_out_header header = {
            .len = (uint32_t)(sizeof header + reply.size), .error = reply.error, .unique = request.header->unique};
        struct iovec parts[] = {{&header, sizeof header}, {(void *)reply.body, reply.size}};
        if (writev(mine, parts, reply.size ? 2 : 1) < 0 && errno != ENOENT && errno != ENODEV)
            die("/dev/fuse: an answer");
    }
}

/* ---- rings */

/* One request at a time: the kernel writes it here, and reads the answer from here. */
struct entry {
    struct fuse_uring_req_header *header;
    char *payload;
    struct iovec parts[2]; /* both, as the kernel is told */
};

struct ring {
    int descriptor;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask;
    char *sqes;
    struct io_uring_cqe *cqes;
    unsigned pending; /* SQEs that were not submitted yet */
};

static pthread_barrier_t rings_made, greeted;

static char *map(int descriptor, size_t size, off_t offset)
{
    int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    char *address = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, descriptor, offset);
    if (address == MAP_FAILED)
        die("memory of a ring");
    return address;
}

static struct ring make_ring(void)
{
    struct io_uring_params parameters = {.flags = IORING_SETUP_SQE128 | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
                                         .cq_entries = 2 * (uint32_t)options.depth};
    struct ring ring = {.descriptor = (int)syscall(SYS_io_uring_setup, options.depth, &parameters)};
    if (ring.descriptor < 0)
        die("io_uring_setup (see kernel.io_uring_disabled)");
    if (syscall(SYS_io_uring_register, ring.descriptor, IORING_REGISTER_FILES, &device, 1) < 0)
        die("io_uring_register");
    struct io_sqring_offsets *sq = &parameters.sq_off;
    struct io_cqring_offsets *cq = &parameters.cq_off;
    char *sq_ring = map(ring.descriptor, sq->array + parameters.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    char *cq_ring = map(ring.descriptor, cq->cqes + parameters.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.sqes = map(ring.descriptor, parameters.sq_entries * (size_t)SQE_SIZE, IORING_OFF_SQES);
    ring.sq_tail = (_Atomic uint32_t *)(sq_ring + sq->tail);
    ring.sq_mask = *(uint32_t *)(sq_ring + sq->ring_mask);
    ring.cq_head = (_Atomic uint32_t *)(cq_ring + cq->head);
    ring.cq_tail = (_Atomic uint32_t *)(cq_ring + cq->tail);
    ring.cq_mask = *(uint32_t *)(cq_ring + cq->ring_mask);
    ring.cqes = (struct io_uring_cqe *)(cq_ring + cq->cqes);
    for (uint32_t i = 0; i < parameters.sq_entries; i++)
        ((uint32_t *)(sq_ring + sq->array))[i] = i;
    return ring;
}

/* Prepares a command for an entry; there is room, since an entry has one command at a time. */
static void push(struct ring *ring, const struct worker *worker, struct entry *entry, enum fuse_uring_cmd command)
{
    uint32_t tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    struct io_uring_sqe *sqe = (struct io_uring_sqe *)(ring->sqes + (size_t)(tail & ring->sq_mask) * SQE_SIZE);
    memset(sqe, 0, SQE_SIZE);
    sqe->opcode = IORING_OP_URING_CMD;
    sqe->flags = IOSQE_FIXED_FILE; /* the device is the only one, number 0 */
    sqe->cmd_op = command;
    sqe->user_data = (uint64_t)(uintptr_t)entry;
    struct fuse_uring_cmd_req *request = (struct fuse_uring_cmd_req *)sqe->cmd;
    request->qid = (uint16_t)worker->number;
    if (command == FUSE_IO_URING_CMD_REGISTER) {
        sqe->addr = (uint64_t)(uintptr_t)entry->parts;
        sqe->len = 2;
    } else {
        request->commit_id = entry->header->ring_ent_in_out.commit_id;
    }
    atomic_store_explicit(ring->sq_tail, tail + 1, memory_order_release);
    ring->pending++;
}

/* Answers the request that an entry holds, in its place. */
static void serve_entry(struct worker *worker, struct entry *entry)
{
    struct fuse_in_header in;
    memcpy(&in, entry->header->in_out, sizeof in);
    count(worker, in.opcode);
    struct request request = {.header = &in, .argument = entry->header->op_in, .name = entry->payload, .room = entry->payload};
    struct reply reply = answer(&request);
    if (reply.size && reply.body != entry->payload)
        memcpy(entry->payload, reply.body, reply.size);
    struct fuse_out_header out = {.len = (uint32_t)(sizeof out + reply.size), .error = reply.error, .unique = in.unique};
    memcpy(entry->header->in_out, &out, sizeof out);
    entry->header->ring_ent_in_out.payload_sz = (uint32_t)reply.size;
}

/* Serves what came; false when the session has ended. */
static bool serve_completions(struct ring *ring, struct worker *worker, enum fuse_uring_cmd *last)
{
    uint32_t head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    for (; head != tail; head++) {
        struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
        struct entry *entry = (struct entry *)(uintptr_t)cqe->user_data;
        int result = cqe->res;
        if (result == -ENOTCONN || result == -ECONNABORTED || result == -ECANCELED)
            return false;
        if (result && result != -EAGAIN && result != -EINTR)
            give_up(*last == FUSE_IO_URING_CMD_REGISTER ? "io_uring: an entry of a ring" : "io_uring: an answer", strerror(-result));
        if (!result) {
            serve_entry(worker, entry);
            *last = FUSE_IO_URING_CMD_COMMIT_AND_FETCH;
        }
        push(ring, worker, entry, *last);
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
    return true;
}

static void *serve_ring(void *argument)
{
    struct worker *worker = argument;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(worker->number, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu); /* of a CPU that is offline nothing is asked */
    struct ring ring = make_ring();
    struct entry *entries = calloc((size_t)options.depth, sizeof *entries);
    if (!entries)
        die("memory of a ring");
    for (int i = 0; i < options.depth; i++) {
        struct entry *entry = &entries[i];
        entry->header = (struct fuse_uring_req_header *)map(-1, PAGE, 0);
        entry->payload = map(-1, MAX_READ, 0);
        entry->parts[0] = (struct iovec){entry->header, sizeof *entry->header};
        entry->parts[1] = (struct iovec){entry->payload, MAX_READ};
        push(&ring, worker, entry, FUSE_IO_URING_CMD_REGISTER);
    }
    pthread_barrier_wait(&rings_made);
    pthread_barrier_wait(&greeted);
    enum fuse_uring_cmd last = FUSE_IO_URING_CMD_REGISTER;
    do {
        long submitted = syscall(SYS_io_uring_enter, ring.descriptor, ring.pending, 1, IORING_ENTER_GETEVENTS, NULL, 0);
        if (submitted < 0 && errno != EINTR)
            die("io_uring_enter");
        if (submitted > 0)
            ring.pending -= (unsigned)submitted;
    } while (serve_completions(&ring, worker, &last));
    end_of_session();
    return NULL;
}

/* The kernel wants a queue for each CPU that there may ever be. */
static int possible_cpus(void)
{
    int first, last;
    FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
    int found = file ? fscanf(file, "%d-%d", &first, &last) : 0;
    if (found < 1)
        give_up("/sys/devices/system/cpu/possible", "not a range of CPUs");
    fclose(file);
    return found == 2 ? last + 1 : first + 1;
}

/* ---- the session */

static void start(struct worker *worker, enum channel channel, int number)
{
    worker->channel = channel;
    worker->number = number;
    errno = pthread_create(&worker->thread, NULL, channel == DEV ? serve_device : serve_ring, worker);
    if (errno)
        die("a worker");
}

static void mount_here(void)
{
    char words[128];
    snprintf(words, sizeof words, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,max_read=%d", device, MAX_READ);
    if (mount("stub", options.mountpoint, "fuse.stub", MS_RDONLY | MS_NOSUID | MS_NODEV, words))
        die(options.mountpoint);
    atomic_store(&mounted, true);
}

/* Serves until a signal comes. Rings are made before the mount, so that no request waits for one that cannot be made. */
static void serve(void)
{
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        die("/dev/fuse");
    const int rings = options.channel == IO_URING ? possible_cpus() : 0;
    const int others = rings ? 1 : options.threads;
    workers = calloc((size_t)(rings + others), sizeof *workers);
    if (!workers)
        die("the workers");
    pthread_barrier_init(&rings_made, NULL, (unsigned)rings + 1);
    pthread_barrier_init(&greeted, NULL, (unsigned)rings + 1);
    worker_count = rings + others;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    for (int i = 0; i < rings; i++)
        start(&workers[i], IO_URING, i);
    pthread_barrier_wait(&rings_made);
    mount_here();
    greet();
    pthread_barrier_wait(&greeted);
    for (int i = rings; i < worker_count; i++)
        start(&workers[i], DEV, i);
    int signal;
    sigwait(&signals, &signal);
    if (atomic_exchange(&mounted, false))
        umount2(options.mountpoint, MNT_DETACH);
}

/* ---- the command line */

static const char usage[] =
    "usage: stub [--channel dev|io_uring] [--threads N] [--depth N] [--timeout SECONDS] [--opens] DIRECTORY MOUNTPOINT\n"
    "  --channel dev|io_uring  how requests come (default dev)\n"
    "  --threads N             workers of dev (default 4)\n"
    "  --depth N               requests at once in each ring (default 8)\n"
    "  --timeout SECONDS       that the kernel keeps names and attributes (default 86400)\n"
    "  --opens                 answer opens instead of leaving them to the kernel\n";

static long parse_number(const char *option, const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < least || number > most) {
        fprintf(stderr, "stub: --%s %s: not a number from %ld to %ld\n", option, text, least, most);
        exit(2);
    }
    return number;
}

static enum channel parse_channel(const char *text)
{
    for (enum channel channel = DEV; channel < CHANNELS; channel++)
        if (!strcmp(text, channel_names[channel]))
            return channel;
    fprintf(stderr, "stub: --channel %s: not dev or io_uring\n", text);
    exit(2);
}

static void parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"channel", required_argument, NULL, 'c'}, {"threads", required_argument, NULL, 't'}, {"depth", required_argument, NULL, 'd'},
        {"timeout", required_argument, NULL, 's'}, {"opens", no_argument, NULL, 'o'},         {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'c':
            options.channel = parse_channel(optarg);
            break;
        case 't':
            options.threads = (int)parse_number("threads", optarg, 1, MAX_THREADS);
            break;
        case 'd':
            options.depth = (int)parse_number("depth", optarg, 1, MAX_DEPTH);
            break;
        case 's':
            options.kept_seconds = (uint64_t)parse_number("timeout", optarg, 0, INT32_MAX);
            break;
        case 'o':
            options.opens = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (argc - optind != 2) {
        fputs(usage, stderr);
        exit(2);
    }
    options.directory = argv[optind];
    options.mountpoint = argv[optind + 1];
}

int main(int argc, char **argv)
{
    parse_options(argc, argv);
    load(options.directory);
    serve();
    return 0;
}
