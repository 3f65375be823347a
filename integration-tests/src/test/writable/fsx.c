/*
 * Changes files at random in every way there is, and compares them with an image in memory.
 *
 * Usage: fsx [OPTION]... DIRECTORY          (fsx --help)
 *
 * Each process has a file of its own in DIRECTORY. An operation is a read, write, append, truncation, mapped read or
 * write, hole, zeroed or allocated range, copy of a range, fsync, rename, or close and open. After each operation the
 * size is compared, after each read the bytes, and at each open and at the end the whole file. The seed decides
 * everything: with the same options the same seed repeats a run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FALLOC_FL_ZERO_RANGE
#define FALLOC_FL_ZERO_RANGE 0x10
#endif

enum kind {
  READ, WRITE, APPEND, TRUNCATE, MAPPED_READ, MAPPED_WRITE, MAPPED_WRITE_AFTER_CLOSE, PUNCH, ZERO, ZERO_KEEP,
  ALLOCATE, COPY, COPY_FROM, SYNC, REOPEN, EMPTY, RENAME, KINDS
};

static const struct {
  const char *name;
  int weight;
} kinds[KINDS] = {
    [READ] = {"read", 18},
    [WRITE] = {"write", 18},
    [APPEND] = {"append", 6},
    [TRUNCATE] = {"truncate", 8},
    [MAPPED_READ] = {"mapread", 8},
    [MAPPED_WRITE] = {"mapwrite", 8},
    [MAPPED_WRITE_AFTER_CLOSE] = {"mapclose", 1},
    [PUNCH] = {"punch", 6},
    [ZERO] = {"zero", 3},
    [ZERO_KEEP] = {"zerokeep", 3},
    [ALLOCATE] = {"allocate", 2},
    [COPY] = {"copy", 6},
    [COPY_FROM] = {"copyfrom", 2},
    [SYNC] = {"fsync", 1},
    [REOPEN] = {"reopen", 0}, /* by --reopen-every */
    [EMPTY] = {"empty", 1},   /* open with O_TRUNC */
    [RENAME] = {"rename", 1},
};

struct operation {
  enum kind kind;
  uint64_t number;
  int64_t offset, length, from, size_before;
};

static int64_t limit = 256 << 10, longest = 64 << 10;
static uint64_t operations = 100000, seed, reopen_every = 100, seconds;
static bool enabled[KINDS], keep, verbose;

/* Of one process. */
static uint64_t state;
static unsigned char *image, *buffer;
static uint32_t *writers; /* the operation that last changed each byte */
static int64_t size;
static int descriptor = -1, source = -1;
static char path[4096], other_path[4096], source_path[4096];
static struct operation history[64];
static uint64_t current;
static int process;

/* splitmix64 */
static uint64_t next_random(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int64_t below(int64_t bound) { return bound <= 0 ? 0 : (int64_t)(next_random() % (uint64_t)bound); }

static void print_history(void) {
  for (uint64_t i = current >= 64 ? current - 63 : 0; i <= current; i++) {
    const struct operation *o = &history[i % 64];
    printf("  %" PRIu64 ": %-8s offset %" PRId64 " length %" PRId64, o->number, kinds[o->kind].name, o->offset, o->length);
    if (o->kind == COPY || o->kind == COPY_FROM) printf(" from %" PRId64, o->from);
    printf(", size before %" PRId64 "\n", o->size_before);
  }
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...) {
  va_list arguments;
  flockfile(stdout);
  printf("fsx: process %d, seed %" PRIu64 ", operation %" PRIu64 ", %s: ", process, seed, current, path);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\nThe last operations:\n");
  print_history();
  fflush(stdout);
  /* What should be there, to compare by hand. */
  char good[4200];
  snprintf(good, sizeof good, "/tmp/fsx-good.%d.%d", (int)getppid(), process);
  int out = open(good, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out >= 0 && write(out, image, (size_t)size) == size) printf("The file as it should be: %s\n", good);
  fflush(stdout);
  _exit(1);
}

static void check_bytes(const unsigned char *found, int64_t offset, int64_t length, const char *how) {
  if (memcmp(found, image + offset, (size_t)length) == 0) return;
  int64_t first = 0, wrong = 0, zeros = 0;
  while (found[first] == image[offset + first]) first++;
  for (int64_t i = first; i < length; i++) {
    if (found[i] != image[offset + i]) {
      wrong++;
      zeros += found[i] == 0;
    }
  }
  fail("%s of %" PRId64 " bytes at %" PRId64 ": first difference at %" PRId64 " (0x%" PRIx64 "), found 0x%02x, expected 0x%02x, "
       "which operation %" PRIu32 " put there; %" PRId64 " bytes differ, of which %" PRId64 " are zero",
       how, length, offset, offset + first, (uint64_t)(offset + first), found[first], image[offset + first],
       writers[offset + first], wrong, zeros);
}

static void check_size(void) {
  struct stat found;
  if (fstat(descriptor, &found) != 0) fail("fstat: %s", strerror(errno));
  if (found.st_size != size) fail("size by fstat is %" PRId64 ", expected %" PRId64, (int64_t)found.st_size, size);
  if (stat(path, &found) != 0) fail("stat: %s", strerror(errno));
  if (found.st_size != size) fail("size by stat is %" PRId64 ", expected %" PRId64, (int64_t)found.st_size, size);
}

static void read_all(int from, unsigned char *to, int64_t offset, int64_t length, int64_t expected) {
  int64_t done = 0;
  while (done < length) {
    ssize_t n = pread(from, to + done, (size_t)(length - done), offset + done);
    if (n < 0) fail("pread: %s", strerror(errno));
    if (n == 0) break;
    done += n;
  }
  if (done != expected) fail("pread of %" PRId64 " at %" PRId64 " gave %" PRId64 ", expected %" PRId64, length, offset, done, expected);
}

static void write_all(int to, int64_t offset, const unsigned char *from, int64_t length, bool appending) {
  int64_t done = 0;
  while (done < length) {
    ssize_t n = appending ? write(to, from + done, (size_t)(length - done)) : pwrite(to, from + done, (size_t)(length - done), offset + done);
    if (n <= 0) fail("write: %s", n == 0 ? "wrote nothing" : strerror(errno));
    done += n;
  }
}

static void check_whole(const char *how) {
  read_all(descriptor, buffer, 0, size + 100, size);
  check_bytes(buffer, 0, size, how);
}

static void open_again(int flags) {
  descriptor = open(path, O_RDWR | flags, 0644);
  if (descriptor < 0) fail("open: %s", strerror(errno));
}

static void close_file(void) {
  if (close(descriptor) != 0) fail("close: %s", strerror(errno));
  descriptor = -1;
}

/* Bytes that tell which operation wrote them, and are never zero. */
static void fill(unsigned char *to, int64_t offset, int64_t length) {
  for (int64_t i = 0; i < length; i++) to[i] = (unsigned char)(1 + (current * 131 + (uint64_t)(offset + i) * 7 + (uint64_t)((offset + i) >> 8)) % 255);
}

static void grow_image(int64_t to) {
  if (to <= size) return;
  memset(image + size, 0, (size_t)(to - size));
  for (int64_t i = size; i < to; i++) writers[i] = (uint32_t)current;
  size = to;
}

static void note_writer(int64_t offset, int64_t length) {
  for (int64_t i = 0; i < length; i++) writers[offset + i] = (uint32_t)current;
}

static void put_new(int64_t offset, int64_t length) {
  grow_image(offset + length);
  fill(image + offset, offset, length);
  note_writer(offset, length);
}

static unsigned char *map(int64_t offset, int64_t length, int protection, int64_t *start, size_t *mapped) {
  int64_t page = sysconf(_SC_PAGESIZE);
  *start = offset / page * page;
  *mapped = (size_t)(offset + length - *start);
  unsigned char *at = mmap(NULL, *mapped, protection, MAP_SHARED, descriptor, *start);
  if (at == MAP_FAILED) fail("mmap: %s", strerror(errno));
  return at;
}

static void mapped_read(int64_t offset, int64_t length) {
  int64_t start;
  size_t mapped;
  unsigned char *at = map(offset, length, PROT_READ, &start, &mapped);
  check_bytes(at + (offset - start), offset, length, "mapped read");
  if (offset + length == size) {
    for (int64_t i = size; i % sysconf(_SC_PAGESIZE) != 0; i++)
      if (at[i - start] != 0) fail("mapped byte %" PRId64 " behind the end of %" PRId64 " is 0x%02x, not zero", i, size, at[i - start]);
  }
  munmap(at, mapped);
}

static void mapped_write(int64_t offset, int64_t length, bool close_first) {
  if (offset + length > size) {
    if (ftruncate(descriptor, offset + length) != 0) fail("ftruncate before mmap: %s", strerror(errno));
  }
  int64_t start;
  size_t mapped;
  unsigned char *at = map(offset, length, PROT_READ | PROT_WRITE, &start, &mapped);
  if (close_first) close_file();
  put_new(offset, length);
  memcpy(at + (offset - start), image + offset, (size_t)length);
  if (!close_first && next_random() % 3 == 0 && msync(at, mapped, MS_SYNC) != 0) fail("msync: %s", strerror(errno));
  if (munmap(at, mapped) != 0) fail("munmap: %s", strerror(errno));
  if (close_first) {
    open_again(0);
    check_whole("whole file after a mapped write behind close");
  }
}

/* Returns false and turns the operation off if the file system does not have it. */
static bool range_operation(enum kind kind, int mode, int64_t offset, int64_t length) {
  if (fallocate(descriptor, mode, offset, length) == 0) return true;
  if (errno != EOPNOTSUPP) fail("fallocate: %s", strerror(errno));
  enabled[kind] = false;
  printf("fsx: process %d: no %s here (EOPNOTSUPP): left out\n", process, kinds[kind].name);
  return false;
}

static void zero_image(int64_t offset, int64_t length) {
  if (offset >= size) return;
  if (offset + length > size) length = size - offset;
  memset(image + offset, 0, (size_t)length);
  note_writer(offset, length);
}

static bool copy_range(int from, int64_t offset, int64_t to, int64_t length) {
  int64_t done = 0;
  while (done < length) {
    off_t in = offset + done, out = to + done;
    ssize_t n = copy_file_range(from, &in, descriptor, &out, (size_t)(length - done), 0);
    if (n < 0 && done == 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EXDEV)) return false;
    if (n < 0) fail("copy_file_range: %s", strerror(errno));
    if (n == 0) fail("copy_file_range ended after %" PRId64 " of %" PRId64 " bytes", done, length);
    done += n;
  }
  return true;
}

static void do_operation(struct operation *o) {
  int64_t offset = o->offset, length = o->length;
  switch (o->kind) {
    case READ:
      read_all(descriptor, buffer, offset, length, offset >= size ? 0 : size - offset < length ? size - offset : length);
      if (offset < size) check_bytes(buffer, offset, size - offset < length ? size - offset : length, "read");
      break;
    case WRITE:
      put_new(offset, length);
      write_all(descriptor, offset, image + offset, length, false);
      break;
    case APPEND: {
      int appending = open(path, O_WRONLY | O_APPEND);
      if (appending < 0) fail("open with O_APPEND: %s", strerror(errno));
      put_new(size, length);
      write_all(appending, 0, image + size - length, length, true);
      if (close(appending) != 0) fail("close after append: %s", strerror(errno));
      break;
    }
    case TRUNCATE:
      if (next_random() % 2 ? ftruncate(descriptor, offset) : truncate(path, offset)) fail("truncate: %s", strerror(errno));
      grow_image(offset);
      size = offset;
      break;
    case MAPPED_READ:
      mapped_read(offset, length);
      break;
    case MAPPED_WRITE:
    case MAPPED_WRITE_AFTER_CLOSE:
      mapped_write(offset, length, o->kind == MAPPED_WRITE_AFTER_CLOSE);
      break;
    case PUNCH:
      if (range_operation(PUNCH, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length)) zero_image(offset, length);
      break;
    case ZERO:
      if (range_operation(ZERO, FALLOC_FL_ZERO_RANGE, offset, length)) {
        grow_image(offset + length);
        zero_image(offset, length);
      }
      break;
    case ZERO_KEEP:
      if (range_operation(ZERO_KEEP, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, length)) zero_image(offset, length);
      break;
    case ALLOCATE:
      if (range_operation(ALLOCATE, 0, offset, length)) grow_image(offset + length);
      break;
    case COPY: {
      int64_t to = o->offset;
      if (!copy_range(descriptor, o->from, to, length)) {
        enabled[COPY] = false;
        printf("fsx: process %d: no copy here (%s): left out\n", process, strerror(errno));
        break;
      }
      grow_image(to + length);
      memmove(image + to, image + o->from, (size_t)length);
      note_writer(to, length);
      break;
    }
    case COPY_FROM:
      fill(buffer, 0, length);
      write_all(source, o->from, buffer, length, false);
      if (!copy_range(source, o->from, offset, length)) {
        enabled[COPY_FROM] = false;
        printf("fsx: process %d: no copyfrom here (%s): left out\n", process, strerror(errno));
        break;
      }
      grow_image(offset + length);
      memcpy(image + offset, buffer, (size_t)length);
      note_writer(offset, length);
      break;
    case SYNC:
      if (next_random() % 2 ? fsync(descriptor) : fdatasync(descriptor)) fail("fsync: %s", strerror(errno));
      break;
    case REOPEN:
      close_file();
      open_again(0);
      check_whole("whole file after open");
      break;
    case EMPTY:
      close_file();
      open_again(O_TRUNC);
      size = 0;
      break;
    case RENAME: {
      if (rename(path, other_path) != 0) fail("rename: %s", strerror(errno));
      char swap[sizeof path];
      memcpy(swap, path, sizeof path);
      memcpy(path, other_path, sizeof path);
      memcpy(other_path, swap, sizeof path);
      break;
    }
    case KINDS:
      abort();
  }
}

static struct operation choose(void) {
  int total = 0;
  for (int i = 0; i < KINDS; i++) total += enabled[i] ? kinds[i].weight : 0;
  struct operation o = {.kind = READ, .number = current, .size_before = size};
  if (reopen_every && enabled[REOPEN] && next_random() % reopen_every == 0) {
    o.kind = REOPEN;
    return o;
  }
  int64_t at = below(total);
  for (int i = 0; i < KINDS; i++) {
    if (!enabled[i]) continue;
    at -= kinds[i].weight;
    if (at < 0) {
      o.kind = (enum kind)i;
      break;
    }
  }
  /* A third of the offsets and lengths is aligned to blocks, where file systems change their minds. */
  int64_t unit = next_random() % 3 == 0 ? 4096 : 1;
  o.offset = below(limit) / unit * unit;
  o.length = (1 + below(next_random() % 4 == 0 ? 200 : longest)) / unit * unit;
  if (o.length == 0) o.length = unit;
  if (o.offset + o.length > limit) o.length = limit - o.offset;
  switch (o.kind) {
    case MAPPED_READ:
      if (size == 0) {
        o.kind = READ;
        break;
      }
      o.offset %= size;
      if (o.offset + o.length > size || next_random() % 4 == 0) o.length = size - o.offset;
      break;
    case APPEND:
      o.offset = size;
      if (o.length > limit - size) o.length = limit - size;
      if (o.length == 0) o.kind = READ, o.length = 1;
      break;
    case TRUNCATE:
      if (next_random() % 8 == 0) o.offset = size; /* to the same size */
      o.length = 0;
      break;
    case COPY: {
      if (o.length > size / 2) o.length = size / 2;
      if (o.length == 0) {
        o.kind = READ, o.length = 1;
        break;
      }
      o.from = below(size - o.length + 1);
      /* The ranges may not overlap. */
      if (o.offset + o.length > limit) o.offset = limit - o.length;
      if (o.offset < o.from + o.length && o.from < o.offset + o.length) {
        if (o.from >= o.length) o.offset = below(o.from - o.length + 1);
        else if (o.from + 2 * o.length <= limit) o.offset = o.from + o.length;
        else o.kind = READ;
      }
      break;
    }
    case COPY_FROM:
      o.from = below(limit - o.length + 1);
      break;
    default:
      break;
  }
  return o;
}

static int run(const char *directory) {
  state = seed + (uint64_t)process * 1000003u;
  image = malloc((size_t)limit);
  buffer = malloc((size_t)limit + 4096);
  writers = calloc((size_t)limit, sizeof *writers);
  if (!image || !buffer || !writers) {
    fprintf(stderr, "fsx: no memory\n");
    return 2;
  }
  snprintf(path, sizeof path, "%.3900s/fsx.%d.%d", directory, (int)getppid(), process);
  snprintf(other_path, sizeof other_path, "%.4000s.renamed", path);
  snprintf(source_path, sizeof source_path, "%.4000s.source", path);
  source = open(source_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (source < 0 || descriptor < 0) {
    fprintf(stderr, "fsx: %s: %s\n", path, strerror(errno));
    return 2;
  }
  uint64_t counts[KINDS] = {0};
  time_t start = time(NULL);
  for (current = 0; current < operations && (seconds == 0 || time(NULL) - start < (time_t)seconds); current++) {
    struct operation *o = &history[current % 64];
    *o = choose();
    if (verbose) printf("%d %" PRIu64 ": %s %" PRId64 " %" PRId64 " (size %" PRId64 ")\n", process, current, kinds[o->kind].name, o->offset, o->length, size);
    do_operation(o);
    counts[o->kind]++;
    check_size();
  }
  close_file();
  open_again(0);
  check_whole("whole file at the end");
  close_file();
  close(source);
  if (!keep) {
    unlink(path);
    unlink(source_path);
  }
  printf("fsx: process %d: %" PRIu64 " operations without a difference:", process, current);
  for (int i = 0; i < KINDS; i++)
    if (counts[i]) printf(" %s %" PRIu64, kinds[i].name, counts[i]);
  printf("\n");
  fflush(stdout);
  return 0;
}

static void usage(FILE *to) {
  fprintf(to,
          "fsx [OPTION]... DIRECTORY: changes files at random and compares them with an image in memory\n\n"
          "  --operations N    of each process (default 100000)\n"
          "  --seconds N       end after that time\n"
          "  --seed N          (default: by the clock; it is printed)\n"
          "  --size BYTES      the largest size of a file (default 262144)\n"
          "  --longest BYTES   of one operation (default 65536)\n"
          "  --reopen-every N  close and open after N operations on average; 0 never (default 100)\n"
          "  --processes N     each with a file of its own (default 1)\n"
          "  --without KINDS   comma-separated:");
  for (int i = 0; i < KINDS; i++) fprintf(to, " %s", kinds[i].name);
  fprintf(to,
          "\n  --keep            do not remove the files\n"
          "  --verbose         print each operation\n\n"
          "Examples:\n"
          "  cc -O2 -Wall -o fsx fsx.c\n"
          "  fsx --operations 1000000 /mnt/run42\n"
          "  fsx --processes 4 --size 8388608 --longest 2000000 --reopen-every 20 /mnt/run42\n"
          "  fsx --seed 7 --without mapread,mapwrite,mapclose /mnt/run42\n\n"
          "Exit status: 0 no difference; 1 a difference or an error of a call; 2 wrong usage.\n");
}

static int64_t number(const char *text) {
  char *end;
  errno = 0;
  int64_t value = strtoll(text, &end, 10);
  if (errno || *end || end == text || value < 0) {
    fprintf(stderr, "fsx: '%s' is not a number\n", text);
    exit(2);
  }
  return value;
}

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"operations", 1, 0, 'n'}, {"seed", 1, 0, 's'},    {"size", 1, 0, 'l'},    {"longest", 1, 0, 'o'}, {"reopen-every", 1, 0, 'r'},
      {"processes", 1, 0, 'p'},  {"without", 1, 0, 'w'}, {"keep", 0, 0, 'k'},    {"verbose", 0, 0, 'v'}, {"help", 0, 0, 'h'},
      {"seconds", 1, 0, 't'},    {0, 0, 0, 0}};
  int processes = 1, c;
  seed = (uint64_t)time(NULL);
  for (int i = 0; i < KINDS; i++) enabled[i] = true;
  while ((c = getopt_long(argc, argv, "hv", options, NULL)) != -1) {
    switch (c) {
      case 'n': operations = (uint64_t)number(optarg); break;
      case 's': seed = (uint64_t)number(optarg); break;
      case 'l': limit = number(optarg); break;
      case 'o': longest = number(optarg); break;
      case 'r': reopen_every = (uint64_t)number(optarg); break;
      case 'p': processes = (int)number(optarg); break;
      case 't': seconds = (uint64_t)number(optarg); break;
      case 'k': keep = true; break;
      case 'v': verbose = true; break;
      case 'w':
        for (char *name = strtok(optarg, ","); name; name = strtok(NULL, ",")) {
          int i = 0;
          while (i < KINDS && strcmp(kinds[i].name, name) != 0) i++;
          if (i == KINDS) {
            fprintf(stderr, "fsx: there is no kind of operation '%s'\n", name);
            return 2;
          }
          enabled[i] = false;
        }
        break;
      case 'h': usage(stdout); return 0;
      default: usage(stderr); return 2;
    }
  }
  if (argc - optind != 1 || limit < 8192 || longest < 1 || processes < 1) {
    usage(stderr);
    return 2;
  }
  printf("fsx: seed %" PRIu64 ", %d processes, %" PRIu64 " operations each, files of at most %" PRId64 " bytes\n", seed, processes, operations, limit);
  fflush(stdout);
  for (process = 0; process < processes; process++) {
    pid_t child = fork();
    if (child == 0) exit(run(argv[optind]));
    if (child < 0) {
      perror("fsx: fork");
      return 2;
    }
  }
  int worst = 0, status;
  while (wait(&status) > 0) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (!WIFEXITED(status)) printf("fsx: a process was ended by signal %d\n", WTERMSIG(status));
    if (code > worst) worst = code;
  }
  return worst;
}
