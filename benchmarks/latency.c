/*
 * Shows a directory read-only, and lets each operation take a given time longer, many at once: a source far away.
 *
 * getattr (which a lookup asks too), readlink, opendir, readdir, open and read each wait before they begin. Nothing else limits
 * it: threads are started as operations come, reads are as large as the kernel sends them. Names and attributes are kept by the
 * kernel for the given time, as a network file system does; data is kept as long as a file is open. What was asked so far
 * is the extended attribute user.operations of the mount's root, as JSON.
 *
 * It stays in the foreground and ends when it is unmounted or sent SIGTERM. Needs root and libfuse 3.12 or newer.
 *
 * Build: cc -O2 -std=c11 -Wall -Wextra -o latency latency.c $(pkg-config --cflags --libs fuse3)
 */
#define FUSE_USE_VERSION 312
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_THREADS = 1024,
    MAX_BACKGROUND = 1024, /* reads ahead under way; the kernel's default of 12 would be a limit of this program's own */
    REQUEST_SIZE = 1 << 20,
};

static int source; /* the directory shown, open */
static struct timespec delay;
static double kept_seconds;

enum operation { GETATTR, READLINK, OPENDIR, READDIR, OPEN, READ, STATFS, OPERATION_COUNT };
static const char *const names[OPERATION_COUNT] = {"getattr", "readlink", "opendir", "readdir", "open", "read", "statfs"};
static atomic_uint_fast64_t asked[OPERATION_COUNT];

/* The way of a request to a far server and back. */
static void travel(enum operation operation)
{
    atomic_fetch_add(&asked[operation], 1);
    struct timespec left = delay;
    /* Even no time at all would be some 50 microseconds of sleep. */
    while ((left.tv_sec || left.tv_nsec) && nanosleep(&left, &left) && errno == EINTR)
        ;
}

/* A path below the mount, as one below the source. */
static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int result(int returned)
{
    return returned < 0 ? -errno : 0;
}

static void *far_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    connection->max_background = MAX_BACKGROUND;
    connection->max_readahead = REQUEST_SIZE;
    config->use_ino = 1;
    config->nullpath_ok = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = kept_seconds;
    return NULL;
}

static int far_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    travel(GETATTR);
    return result(file ? fstat((int)file->fh, status) : fstatat(source, below(path), status, AT_SYMLINK_NOFOLLOW));
}

static int far_readlink(const char *path, char *target, size_t size)
{
    travel(READLINK);
    ssize_t length = readlinkat(source, below(path), target, size - 1);
    if (length < 0)
        return -errno;
    target[length] = '\0';
    return 0;
}

static int far_opendir(const char *path, struct fuse_file_info *file)
{
    travel(OPENDIR);
    int descriptor = openat(source, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    DIR *directory = fdopendir(descriptor);
    if (!directory) {
        int error = errno;
        close(descriptor);
        return -error;
    }
    file->fh = (uint64_t)(uintptr_t)directory;
    return 0;
}

/* All names at once; libfuse hands them on piece by piece. */
static int far_readdir(const char *path, void *found, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file,
                       enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)flags;
    travel(READDIR);
    DIR *directory = (DIR *)(uintptr_t)file->fh;
    rewinddir(directory);
    struct dirent *entry;
    while (errno = 0, (entry = readdir(directory))) {
        struct stat status = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
        if (fill(found, entry->d_name, &status, 0, 0))
            return -ENOMEM;
    }
    return -errno;
}

static int far_releasedir(const char *path, struct fuse_file_info *file)
{
    (void)path;
    return result(closedir((DIR *)(uintptr_t)file->fh));
}

static int far_open(const char *path, struct fuse_file_info *file)
{
    travel(OPEN);
    int descriptor = openat(source, below(path), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -errno;
    file->fh = (uint64_t)descriptor;
    return 0;
}

static int far_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
    (void)path;
    travel(READ);
    ssize_t got = pread((int)file->fh, buffer, size, offset);
    return got < 0 ? -errno : (int)got;
}

static int far_release(const char *path, struct fuse_file_info *file)
{
    (void)path;
    return result(close((int)file->fh));
}

static int far_statfs(const char *path, struct statvfs *status)
{
    (void)path;
    travel(STATFS);
    return result(fstatvfs(source, status));
}

static int far_getxattr(const char *path, const char *name, char *value, size_t size)
{
    if (strcmp(path, "/") || strcmp(name, "user.operations"))
        return -ENODATA;
    char text[512];
    int length = 0;
    for (int i = 0; i < OPERATION_COUNT; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s\"%s\": %" PRIuFAST64, i ? ", " : "{", names[i], atomic_load(&asked[i]));
    length += snprintf(text + length, sizeof text - (size_t)length, "}");
    if (size && size < (size_t)length)
        return -ERANGE;
    memcpy(value, text, size ? (size_t)length : 0);
    return length;
}

static const struct fuse_operations operations = {
    .init = far_init,
    .getattr = far_getattr,
    .readlink = far_readlink,
    .opendir = far_opendir,
    .readdir = far_readdir,
    .releasedir = far_releasedir,
    .open = far_open,
    .read = far_read,
    .release = far_release,
    .statfs = far_statfs,
    .getxattr = far_getxattr,
};

/* Some versions of libfuse do not hand FUSE_CAP_PARALLEL_DIROPS on, without which the kernel does one lookup in a directory at a time. */
static ssize_t answer(int device, struct iovec *parts, int count, void *data)
{
    (void)data;
    static bool greeted; /* the first answer is that to FUSE_INIT, and nothing else is asked before it */
    if (!greeted && count == 2 && parts[1].iov_len >= offsetof(struct fuse_init_out, max_background))
        ((struct fuse_init_out *)parts[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
    greeted = true;
    return writev(device, parts, count);
}

static ssize_t receive(int device, void *buffer, size_t size, void *data)
{
    (void)data;
    return read(device, buffer, size);
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "latency: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Serves the mount point until it is unmounted or a signal comes; the exit status. */
static int serve(const char *mountpoint)
{
    char *words[] = {"latency", NULL};
    struct fuse_args arguments = FUSE_ARGS_INIT(1, words);
    struct fuse *fuse = fuse_new(&arguments, &operations, sizeof operations, NULL);
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (!fuse || device < 0)
        die("/dev/fuse");
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (mount("latency", mountpoint, "fuse.latency", MS_RDONLY | MS_NOSUID | MS_NODEV, options))
        die(mountpoint);
    static const struct fuse_custom_io io = {.writev = answer, .read = receive};
    struct fuse_session *session = fuse_get_session(fuse);
    struct fuse_loop_config *loop = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(loop, MAX_THREADS);
    fuse_loop_cfg_set_idle_threads(loop, MAX_THREADS);
    int failed = fuse_session_custom_io(session, &io, device) || fuse_set_signal_handlers(session) || fuse_loop_mt(fuse, loop) < 0;
    umount2(mountpoint, MNT_DETACH);
    return failed ? 1 : 0;
}

static double parse_number(const char *text)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (errno || end == text || *end || !(number >= 0 && number <= 1e6)) {
        fprintf(stderr, "latency: %s: not a number from 0 to 1000000\n", text);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: latency SOURCE MOUNTPOINT MILLISECONDS SECONDS\n"
              "  MILLISECONDS  that each operation takes longer\n"
              "  SECONDS       that the kernel keeps names and attributes\n",
              stderr);
        return 2;
    }
    source = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source < 0)
        die(argv[1]);
    double milliseconds = parse_number(argv[3]);
    delay.tv_sec = (time_t)(milliseconds / 1e3);
    delay.tv_nsec = (long)((milliseconds - (double)delay.tv_sec * 1e3) * 1e6);
    kept_seconds = parse_number(argv[4]);
    return serve(argv[2]);
}
