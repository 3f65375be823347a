/*
 * epoch: reads a directory tree the way a training job does.
 *
 * An epoch visits every regular file once, in an order shuffled anew, with a number of reader threads: open, fstat, read
 * to the end, close. A file that cannot be read, or whose length is not its st_size, is an error: named on standard error
 * (the first ten of an epoch), counted, and the run goes on and ends with status 1. With --mode compare the same file below
 * another directory is read beside it, and a byte that differs is an error too.
 *
 * One JSON object a line on standard output: one for the walk that finds the files, then one for each epoch.
 * The time of an epoch is from the release of the readers to the end of the last of them; shuffling is outside it.
 * With --share 1/4 only each fourth file of the order is visited, beginning with the second: the shares 0/4 to 3/4 of the same
 * seed are one epoch together, as nodes read it, if all of them show the same files below their directories. Each file is then
 * taken for its path. --wait has it wait after the walk for its standard input to end, so that several begin at once.
 *
 * With --compute it trains: an accelerator takes what was read, --batch files at a time, and computes so many microseconds for
 * each file. Readers run at most AHEAD_BATCHES ahead of it. The time of an epoch ends when the last batch is computed.
 *
 * Build: cc -O2 -std=c11 -Wall -Wextra -pthread -o epoch epoch.c
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 1024,
    MAX_NAMED_ERRORS = 10,
    BUFFER_SIZE = 1 << 20,
    BUFFER_ALIGNMENT = 4096,
    PAGE_BYTES = 4096,
    FAR_PAGES = 10007, /* a prime, and so is 10009 */
    AHEAD_BATCHES = 2, /* that are read and wait for the accelerator, beside the files that readers have in hand */
};

enum mode { MODE_READ, MODE_STAT, MODE_OPEN, MODE_WALK, MODE_MAP, MODE_MAP_RANDOM, MODE_COMPARE };
static const char *const mode_names[] = {"read", "stat", "open", "walk", "map", "map-random", "compare"};

struct options {
    enum mode mode;
    int threads;
    long epochs;
    uint64_t seed;
    size_t share;
    size_t shares;
    bool wait;
    long compute_us;
    size_t batch;
    const char *directory;
    const char *reference;
};

struct file_list {
    char **paths;
    size_t count;
    size_t capacity;
};

/* What an epoch, or one thread's share of it, came to. */
struct tally {
    uint64_t files;
    uint64_t bytes;
    uint64_t reads;
    uint64_t errors;
    double slowest_seconds;
    double cpu_seconds;
};

/* One epoch in progress: the readers take the files in turn. */
struct epoch {
    const struct file_list *files;
    const struct options *options;
    atomic_size_t next;
    atomic_uint_fast64_t errors;
    pthread_barrier_t start;
    /* Of the training: files that were read, and those that the accelerator has taken. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t read;
    size_t taken;
};

struct reader {
    pthread_t thread;
    struct epoch *epoch;
    char *buffer;
    char *reference_buffer;
    struct tally tally;
};

static const char usage[] =
    "usage: epoch [--mode MODE] [--reference DIRECTORY] [--threads N] [--epochs N] [--seed N] [--share I/N] [--wait]\n"
    "             [--compute MICROSECONDS [--batch FILES]] DIRECTORY\n"
    "  --mode read        open, fstat, read whole and close every file in shuffled order (default)\n"
    "  --mode stat        stat every file in shuffled order\n"
    "  --mode open        open and close every file in shuffled order\n"
    "  --mode walk        only walk the tree with a stat of every entry, once an epoch\n"
    "  --mode map         map every file, in shuffled order, and touch its pages from first to last\n"
    "  --mode map-random  the same, touching each page once in another order\n"
    "  --mode compare     compare the bytes of every file with those of the same file below --reference\n"
    "  --share I/N        visit the files I, I + N, I + 2 N ... of the shuffled order, counted from 0\n"
    "  --wait             begin when standard input ends\n"
    "  --compute N        an accelerator takes the files in batches and computes N microseconds for each\n"
    "  --batch FILES      files that it takes at once (default 1)\n";

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "epoch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Of this process, in user and system mode. */
static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ---- random numbers: splitmix64, enough for an order without pattern */

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, bound): numbers from the incomplete last interval are drawn again. */
static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t number;
    do {
        number = random_next(state);
    } while (number >= limit);
    return number % bound;
}

/* Fisher-Yates. */
static void shuffle(struct file_list *files, uint64_t *random)
{
    for (size_t last = files->count; last > 1; last--) {
        size_t chosen = (size_t)random_below(random, last);
        char *path = files->paths[chosen];
        files->paths[chosen] = files->paths[last - 1];
        files->paths[last - 1] = path;
    }
}

static int by_path(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* ---- the files */

static void append(struct file_list *files, const char *path)
{
    if (files->count == files->capacity) {
        files->capacity = files->capacity ? files->capacity * 2 : 1024;
        files->paths = realloc(files->paths, files->capacity * sizeof *files->paths);
        if (!files->paths)
            die("the list of files");
    }
    files->paths[files->count] = strdup(path);
    if (!files->paths[files->count])
        die("the list of files");
    files->count++;
}

static void clear(struct file_list *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    files->count = 0;
}

/* Walks the tree with an lstat of every entry, as `ls -lR` does, and lists its regular files; returns what it found. */
static struct tally walk(const char *directory, struct file_list *files)
{
    struct tally tally = {0};
    char *const roots[] = {(char *)directory, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!tree)
        die(directory);
    FTSENT *entry;
    while (errno = 0, (entry = fts_read(tree))) {
        switch (entry->fts_info) {
        case FTS_F:
            append(files, entry->fts_path);
            tally.files++;
            tally.bytes += (uint64_t)entry->fts_statp->st_size;
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            fprintf(stderr, "epoch: %s: %s\n", entry->fts_path, strerror(entry->fts_errno));
            tally.errors++;
            break;
        default: /* directories, symbolic links and special files are walked over */
            break;
        }
    }
    if (errno)
        die(directory);
    fts_close(tree);
    return tally;
}

/* ---- one file */

/* Counts an error of this epoch; only the first few are named. */
static void complain(struct epoch *epoch, const char *path, const char *why)
{
    if (atomic_fetch_add(&epoch->errors, 1) < MAX_NAMED_ERRORS)
        fprintf(stderr, "epoch: %s: %s\n", path, why);
}

static void stat_file(struct reader *reader, const char *path)
{
    struct stat status;
    if (stat(path, &status))
        complain(reader->epoch, path, strerror(errno));
}

static void open_file(struct reader *reader, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        complain(reader->epoch, path, strerror(errno));
    else
        close(fd);
}

static void read_open_file(struct reader *reader, const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status)) {
        complain(reader->epoch, path, strerror(errno));
        return;
    }
    uint64_t total = 0;
    ssize_t got;
    while ((got = read(fd, reader->buffer, BUFFER_SIZE)) != 0) {
        if (got > 0) {
            total += (uint64_t)got;
            reader->tally.reads++;
        } else if (errno != EINTR) {
            complain(reader->epoch, path, strerror(errno));
            break;
        }
    }
    reader->tally.bytes += total;
    if (got == 0 && total != (uint64_t)status.st_size) {
        char why[96];
        snprintf(why, sizeof why, "read %" PRIu64 " bytes of %" PRIu64, total, (uint64_t)status.st_size);
        complain(reader->epoch, path, why);
    }
}

static void read_file(struct reader *reader, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        complain(reader->epoch, path, strerror(errno));
        return;
    }
    read_open_file(reader, path, fd);
    close(fd);
}

static void map_open_file(struct reader *reader, const char *path, int fd)
{
    struct stat status;
    if (fstat(fd, &status)) {
        complain(reader->epoch, path, strerror(errno));
        return;
    }
    size_t size = (size_t)status.st_size;
    if (!size)
        return;
    const volatile char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        complain(reader->epoch, path, strerror(errno));
        return;
    }
    size_t pages = (size + PAGE_BYTES - 1) / PAGE_BYTES;
    /* A prime step that does not divide the number of pages leads to each of them once. */
    size_t step = reader->epoch->options->mode == MODE_MAP ? 1 : pages % FAR_PAGES ? FAR_PAGES : FAR_PAGES + 2;
    for (size_t i = 0, page = 0; i < pages; i++, page = (page + step) % pages)
        (void)bytes[page * PAGE_BYTES];
    munmap((void *)bytes, size);
    reader->tally.bytes += size;
}

static void map_file(struct reader *reader, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        complain(reader->epoch, path, strerror(errno));
        return;
    }
    map_open_file(reader, path, fd);
    close(fd);
}

/* Reads until the buffer is full or the file ends; -1 is an error. */
static ssize_t read_full(int fd, char *buffer)
{
    size_t total = 0;
    while (total < BUFFER_SIZE) {
        ssize_t got = read(fd, buffer + total, BUFFER_SIZE - total);
        if (got == 0)
            break;
        if (got > 0)
            total += (size_t)got;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)total;
}

static void compare_open_files(struct reader *reader, const char *path, int fd, int reference)
{
    uint64_t offset = 0;
    ssize_t got;
    do {
        got = read_full(fd, reader->buffer);
        ssize_t expected = read_full(reference, reader->reference_buffer);
        if (got < 0 || expected < 0) {
            complain(reader->epoch, path, strerror(errno));
            return;
        }
        if (got != expected || memcmp(reader->buffer, reader->reference_buffer, (size_t)got)) {
            char why[96];
            snprintf(why, sizeof why, "differs from the reference in the 1 MiB from byte %" PRIu64, offset);
            complain(reader->epoch, path, why);
            return;
        }
        offset += (uint64_t)got;
    } while (got == BUFFER_SIZE);
    reader->tally.bytes += offset;
}

static void compare_file(struct reader *reader, const char *path)
{
    const struct options *options = reader->epoch->options;
    const char *below = path + strlen(options->directory);
    below += strspn(below, "/");
    char reference_path[PATH_MAX];
    snprintf(reference_path, sizeof reference_path, "%s%s%s", options->reference, *below ? "/" : "", below);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int reference = open(reference_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || reference < 0)
        complain(reader->epoch, fd < 0 ? path : reference_path, strerror(errno));
    else
        compare_open_files(reader, path, fd, reference);
    if (fd >= 0)
        close(fd);
    if (reference >= 0)
        close(reference);
}

/* ---- an epoch */

/* Files of this share. */
static size_t share_count(const struct epoch *epoch)
{
    const struct options *options = epoch->options;
    size_t count = epoch->files->count;
    return count <= options->share ? 0 : (count - options->share - 1) / options->shares + 1;
}

/* Waits until the accelerator is near enough for the file of this number, counted from 0. */
static void await_accelerator(struct epoch *epoch, size_t number)
{
    size_t ahead = AHEAD_BATCHES * epoch->options->batch + (size_t)epoch->options->threads;
    pthread_mutex_lock(&epoch->lock);
    while (number >= epoch->taken + ahead)
        pthread_cond_wait(&epoch->changed, &epoch->lock);
    pthread_mutex_unlock(&epoch->lock);
}

static void hand_over(struct epoch *epoch)
{
    pthread_mutex_lock(&epoch->lock);
    epoch->read++;
    pthread_cond_broadcast(&epoch->changed);
    pthread_mutex_unlock(&epoch->lock);
}

/* The accelerator takes whichever files were read, a batch at a time. */
static void *accelerator_main(void *argument)
{
    struct epoch *epoch = argument;
    size_t count = share_count(epoch);
    pthread_barrier_wait(&epoch->start);
    while (epoch->taken < count) {
        size_t left = count - epoch->taken;
        size_t batch = left < epoch->options->batch ? left : epoch->options->batch;
        pthread_mutex_lock(&epoch->lock);
        while (epoch->read - epoch->taken < batch)
            pthread_cond_wait(&epoch->changed, &epoch->lock);
        epoch->taken += batch;
        pthread_cond_broadcast(&epoch->changed);
        pthread_mutex_unlock(&epoch->lock);
        uint64_t us = batch * (uint64_t)epoch->options->compute_us;
        struct timespec time = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
        while (nanosleep(&time, &time) && errno == EINTR)
            ;
    }
    return NULL;
}

static void *reader_main(void *argument)
{
    struct reader *reader = argument;
    struct epoch *epoch = reader->epoch;
    pthread_barrier_wait(&epoch->start);
    for (;;) {
        size_t index = atomic_fetch_add(&epoch->next, epoch->options->shares);
        if (index >= epoch->files->count)
            return NULL;
        if (epoch->options->compute_us)
            await_accelerator(epoch, index / epoch->options->shares);
        double start = now();
        if (epoch->options->mode == MODE_STAT)
            stat_file(reader, epoch->files->paths[index]);
        else if (epoch->options->mode == MODE_OPEN)
            open_file(reader, epoch->files->paths[index]);
        else if (epoch->options->mode == MODE_COMPARE)
            compare_file(reader, epoch->files->paths[index]);
        else if (epoch->options->mode == MODE_MAP || epoch->options->mode == MODE_MAP_RANDOM)
            map_file(reader, epoch->files->paths[index]);
        else
            read_file(reader, epoch->files->paths[index]);
        double seconds = now() - start;
        if (seconds > reader->tally.slowest_seconds)
            reader->tally.slowest_seconds = seconds;
        reader->tally.files++;
        if (epoch->options->compute_us)
            hand_over(epoch);
    }
}

static struct tally run_epoch(const struct file_list *files, const struct options *options, struct reader *readers,
                              double *seconds)
{
    struct epoch epoch = {.files = files, .options = options, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int count = options->threads;
    bool trains = options->compute_us > 0;
    pthread_t accelerator;
    atomic_store(&epoch.next, options->share);
    pthread_barrier_init(&epoch.start, NULL, (unsigned)count + 1 + trains);
    errno = trains ? pthread_create(&accelerator, NULL, accelerator_main, &epoch) : 0;
    if (errno)
        die("starting the accelerator");
    for (int i = 0; i < count; i++) {
        readers[i].epoch = &epoch;
        readers[i].tally = (struct tally){0};
        errno = pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]);
        if (errno)
            die("starting a reader thread");
    }
    double start = now();
    double start_cpu = cpu_seconds();
    pthread_barrier_wait(&epoch.start);
    struct tally total = {0};
    for (int i = 0; i < count; i++) {
        pthread_join(readers[i].thread, NULL);
        total.files += readers[i].tally.files;
        total.bytes += readers[i].tally.bytes;
        total.reads += readers[i].tally.reads;
        if (readers[i].tally.slowest_seconds > total.slowest_seconds)
            total.slowest_seconds = readers[i].tally.slowest_seconds;
    }
    if (trains)
        pthread_join(accelerator, NULL);
    *seconds = now() - start;
    total.cpu_seconds = cpu_seconds() - start_cpu;
    total.errors = atomic_load(&epoch.errors);
    pthread_barrier_destroy(&epoch.start);
    return total;
}

static void print_line(const char *mode, long epoch, int threads, const struct tally *tally, double seconds)
{
    printf("{\"mode\": \"%s\", \"epoch\": %ld, \"threads\": %d, \"files\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"reads\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"seconds\": %.6f, \"slowest_ms\": %.3f, \"cpu_seconds\": %.6f}\n",
           mode, epoch, threads, tally->files, tally->bytes, tally->reads, tally->errors, seconds, tally->slowest_seconds * 1e3,
           tally->cpu_seconds);
    fflush(stdout);
}

static bool walk_and_print(const struct options *options, struct file_list *files, long epoch)
{
    clear(files);
    double start = now();
    struct tally tally = walk(options->directory, files);
    print_line(mode_names[MODE_WALK], epoch, 1, &tally, now() - start);
    return tally.errors == 0;
}

/* ---- the command line */

static long parse_number(const char *option, const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (errno || end == text || *end || number < least || number > most) {
        fprintf(stderr, "epoch: --%s %s: not a number from %ld to %ld\n", option, text, least, most);
        exit(2);
    }
    return number;
}

static enum mode parse_mode(const char *text)
{
    for (int mode = MODE_READ; mode <= MODE_COMPARE; mode++)
        if (!strcmp(text, mode_names[mode]))
            return (enum mode)mode;
    fprintf(stderr, "epoch: --mode %s: not read, stat, open, walk, map, map-random or compare\n", text);
    exit(2);
}

static void parse_share(const char *text, struct options *options)
{
    int end = 0;
    if (sscanf(text, "%4zu/%4zu%n", &options->share, &options->shares, &end) != 2 || text[end] || options->share >= options->shares) {
        fprintf(stderr, "epoch: --share %s: not a share such as 0/4\n", text);
        exit(2);
    }
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"mode", required_argument, NULL, 'm'}, {"threads", required_argument, NULL, 't'},
        {"epochs", required_argument, NULL, 'e'}, {"seed", required_argument, NULL, 's'},
        {"reference", required_argument, NULL, 'r'}, {"share", required_argument, NULL, 'i'}, {"wait", no_argument, NULL, 'w'},
        {"compute", required_argument, NULL, 'c'}, {"batch", required_argument, NULL, 'b'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},
    };
    struct options options = {.mode = MODE_READ, .threads = 1, .epochs = 1, .seed = 42, .shares = 1, .batch = 1};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'm':
            options.mode = parse_mode(optarg);
            break;
        case 't':
            options.threads = (int)parse_number("threads", optarg, 1, MAX_THREADS);
            break;
        case 'e':
            options.epochs = parse_number("epochs", optarg, 1, 1000000);
            break;
        case 's':
            options.seed = (uint64_t)parse_number("seed", optarg, 0, INT64_MAX);
            break;
        case 'r':
            options.reference = optarg;
            break;
        case 'i':
            parse_share(optarg, &options);
            break;
        case 'w':
            options.wait = true;
            break;
        case 'c':
            options.compute_us = parse_number("compute", optarg, 1, 1000000000);
            break;
        case 'b':
            options.batch = (size_t)parse_number("batch", optarg, 1, 1000000);
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (argc - optind != 1 || (options.mode == MODE_COMPARE) != (options.reference != NULL)) {
        fputs(usage, stderr);
        exit(2);
    }
    options.directory = argv[optind];
    return options;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct file_list files = {0};
    bool good = walk_and_print(&options, &files, 1);
    if (options.mode == MODE_WALK) {
        for (long epoch = 2; epoch <= options.epochs; epoch++)
            good &= walk_and_print(&options, &files, epoch);
        return good ? 0 : 1;
    }

    /* Directories are not listed in the same order everywhere. */
    if (options.shares > 1)
        qsort(files.paths, files.count, sizeof *files.paths, by_path);
    while (options.wait && getchar() != EOF)
        ;

    struct reader *readers = calloc((size_t)options.threads, sizeof *readers);
    if (!readers)
        die("the reader threads");
    for (int i = 0; i < options.threads; i++)
        if (!(readers[i].buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_SIZE)) ||
            !(readers[i].reference_buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_SIZE)))
            die("a reader's buffers");
    uint64_t random = options.seed;
    for (long epoch = 1; epoch <= options.epochs; epoch++) {
        double seconds;
        shuffle(&files, &random);
        struct tally tally = run_epoch(&files, &options, readers, &seconds);
        print_line(mode_names[options.mode], epoch, options.threads, &tally, seconds);
        good &= tally.errors == 0;
    }
    return good ? 0 : 1;
}
