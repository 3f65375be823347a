package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.protocol.ChangeProtocol;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.system.Shell;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compares every number of the protocol with this machine's header, through a C program. Skips
 * numbers that are newer than the header.
 */
final class KernelHeaderTest {
  private static final Path HEADER = Path.of("/usr/include/linux/fuse.h");

  /** A C expression, our value for it, and the minor version of the protocol that introduced it. */
  private record HeaderNumber(String expression, long ours, int sinceMinor) {}

  private final List<HeaderNumber> numbers = new ArrayList<>();

  private void number(String expression, long ours, int sinceMinor) {
    numbers.add(new HeaderNumber(expression, ours, sinceMinor));
  }

  private void offset(String struct, String field, int base, int ours, int sinceMinor) {
    number(base + " + offsetof(struct " + struct + ", " + field + ")", ours, sinceMinor);
  }

  private void size(String struct, int ours, int sinceMinor) {
    number("sizeof(struct " + struct + ")", ours, sinceMinor);
  }

  private void requests() {
    int header = KernelProtocol.IN_HEADER_SIZE;
    size("fuse_in_header", header, 0);
    offset("fuse_in_header", "len", 0, KernelProtocol.IN_LENGTH, 0);
    offset("fuse_in_header", "opcode", 0, KernelProtocol.IN_OPCODE, 0);
    offset("fuse_in_header", "unique", 0, KernelProtocol.IN_UNIQUE, 0);
    offset("fuse_in_header", "nodeid", 0, KernelProtocol.IN_NODE, 0);
    offset("fuse_init_in", "major", header, KernelProtocol.INIT_MAJOR, 0);
    offset("fuse_init_in", "minor", header, KernelProtocol.INIT_MINOR, 0);
    offset("fuse_init_in", "max_readahead", header, KernelProtocol.INIT_READAHEAD, 0);
    offset("fuse_init_in", "flags", header, KernelProtocol.INIT_FLAGS, 0);
    offset("fuse_init_in", "flags2", header, KernelProtocol.INIT_FLAGS2, 36);
    offset("fuse_read_in", "offset", header, KernelProtocol.READ_OFFSET, 0);
    offset("fuse_read_in", "size", header, KernelProtocol.READ_SIZE, 0);
    offset("fuse_lseek_in", "offset", header, KernelProtocol.LSEEK_OFFSET, 24);
    offset("fuse_lseek_in", "whence", header, KernelProtocol.LSEEK_WHENCE, 24);
    offset("fuse_getxattr_in", "size", header, KernelProtocol.XATTR_SIZE, 0);
    number(header + " + sizeof(struct fuse_getxattr_in)", KernelProtocol.XATTR_NAME, 0);
    number("FUSE_MIN_READ_BUFFER", KernelProtocol.MIN_REQUEST_BYTES, 0);
    for (Opcode opcode : Opcode.values()) {
      int since =
          switch (opcode) {
            case SYNCFS -> 34;
            case TMPFILE -> 37;
            case STATX -> 39;
            case COPY_FILE_RANGE_64 -> 45;
            default -> 28;
          };
      number("FUSE_" + opcode, opcode.number(), since);
    }
  }

  private void changes() {
    int header = KernelProtocol.IN_HEADER_SIZE;
    offset("fuse_forget_in", "nlookup", header, ChangeProtocol.FORGET_LOOKUPS, 0);
    offset("fuse_batch_forget_in", "count", header, ChangeProtocol.BATCH_COUNT, 16);
    number(header + " + sizeof(struct fuse_batch_forget_in)", ChangeProtocol.BATCH_FIRST, 16);
    size("fuse_forget_one", ChangeProtocol.FORGET_ONE_SIZE, 16);
    offset("fuse_open_in", "flags", header, ChangeProtocol.OPEN_FLAGS, 0);
    offset("fuse_open_in", "open_flags", header, ChangeProtocol.OPEN_OPEN_FLAGS, 32);
    offset("fuse_create_in", "flags", header, ChangeProtocol.CREATE_FLAGS, 0);
    offset("fuse_create_in", "mode", header, ChangeProtocol.CREATE_MODE, 0);
    offset("fuse_create_in", "open_flags", header, ChangeProtocol.CREATE_OPEN_FLAGS, 32);
    number(header + " + sizeof(struct fuse_create_in)", ChangeProtocol.CREATE_NAME, 12);
    number(
        "sizeof(struct fuse_entry_out) + sizeof(struct fuse_open_out)",
        ChangeProtocol.CREATE_OUT_SIZE,
        0);
    offset("fuse_mknod_in", "mode", header, ChangeProtocol.MKNOD_MODE, 0);
    offset("fuse_mknod_in", "rdev", header, ChangeProtocol.MKNOD_DEVICE, 0);
    number(header + " + sizeof(struct fuse_mknod_in)", ChangeProtocol.MKNOD_NAME, 12);
    offset("fuse_mkdir_in", "mode", header, ChangeProtocol.MKDIR_MODE, 0);
    number(header + " + sizeof(struct fuse_mkdir_in)", ChangeProtocol.MKDIR_NAME, 0);
    offset("fuse_rename_in", "newdir", header, ChangeProtocol.RENAME_DIRECTORY, 0);
    number(header + " + sizeof(struct fuse_rename_in)", ChangeProtocol.RENAME_NAMES, 0);
    offset("fuse_rename2_in", "flags", header, ChangeProtocol.RENAME2_FLAGS, 23);
    number(header + " + sizeof(struct fuse_rename2_in)", ChangeProtocol.RENAME2_NAMES, 23);
    offset("fuse_link_in", "oldnodeid", header, ChangeProtocol.LINK_INODE, 0);
    number(header + " + sizeof(struct fuse_link_in)", ChangeProtocol.LINK_NAME, 0);
    for (String struct :
        new String[] {"read", "write", "flush", "release", "fsync", "fallocate", "lseek"}) {
      offset("fuse_" + struct + "_in", "fh", header, ChangeProtocol.HANDLE, 24);
    }
    offset("fuse_write_in", "offset", header, ChangeProtocol.WRITE_OFFSET, 0);
    offset("fuse_write_in", "size", header, ChangeProtocol.WRITE_SIZE, 0);
    offset("fuse_write_in", "write_flags", header, ChangeProtocol.WRITE_FLAGS, 0);
    offset("fuse_write_in", "flags", header, ChangeProtocol.WRITE_FILE_FLAGS, 9);
    number(header + " + sizeof(struct fuse_write_in)", ChangeProtocol.WRITE_DATA, 9);
    size("fuse_write_out", ChangeProtocol.WRITE_OUT_SIZE, 0);
    offset("fuse_fsync_in", "fsync_flags", header, ChangeProtocol.FSYNC_FLAGS, 0);
    number("FUSE_FSYNC_FDATASYNC", ChangeProtocol.FSYNC_DATA_ONLY, 31);
    String set = "fuse_setattr_in";
    offset(set, "valid", header, ChangeProtocol.SETATTR_VALID, 0);
    offset(set, "fh", header, ChangeProtocol.SETATTR_HANDLE, 0);
    offset(set, "size", header, ChangeProtocol.SETATTR_SIZE, 0);
    offset(set, "atime", header, ChangeProtocol.SETATTR_ATIME, 0);
    offset(set, "mtime", header, ChangeProtocol.SETATTR_MTIME, 0);
    offset(set, "atimensec", header, ChangeProtocol.SETATTR_ATIME_NANOS, 0);
    offset(set, "mtimensec", header, ChangeProtocol.SETATTR_MTIME_NANOS, 0);
    offset(set, "mode", header, ChangeProtocol.SETATTR_MODE, 0);
    offset(set, "uid", header, ChangeProtocol.SETATTR_UID, 0);
    offset(set, "gid", header, ChangeProtocol.SETATTR_GID, 0);
    number("FATTR_MODE", ChangeProtocol.FATTR_MODE, 0);
    number("FATTR_UID", ChangeProtocol.FATTR_UID, 0);
    number("FATTR_GID", ChangeProtocol.FATTR_GID, 0);
    number("FATTR_SIZE", ChangeProtocol.FATTR_SIZE, 0);
    number("FATTR_ATIME", ChangeProtocol.FATTR_ATIME, 0);
    number("FATTR_MTIME", ChangeProtocol.FATTR_MTIME, 0);
    number("FATTR_FH", ChangeProtocol.FATTR_FH, 0);
    number("FATTR_ATIME_NOW", ChangeProtocol.FATTR_ATIME_NOW, 0);
    number("FATTR_MTIME_NOW", ChangeProtocol.FATTR_MTIME_NOW, 0);
    number("FATTR_KILL_SUIDGID", ChangeProtocol.FATTR_KILL_SUIDGID, 32);
    offset("fuse_setxattr_in", "size", header, ChangeProtocol.SETXATTR_SIZE, 0);
    offset("fuse_setxattr_in", "flags", header, ChangeProtocol.SETXATTR_FLAGS, 0);
    number(header + " + FUSE_COMPAT_SETXATTR_IN_SIZE", ChangeProtocol.SETXATTR_NAME, 33);
    offset("fuse_fallocate_in", "offset", header, ChangeProtocol.FALLOCATE_OFFSET, 19);
    offset("fuse_fallocate_in", "length", header, ChangeProtocol.FALLOCATE_LENGTH, 19);
    offset("fuse_fallocate_in", "mode", header, ChangeProtocol.FALLOCATE_MODE, 19);
    String copy = "fuse_copy_file_range_in";
    offset(copy, "fh_in", header, ChangeProtocol.HANDLE, 28);
    offset(copy, "off_in", header, ChangeProtocol.COPY_OFFSET, 28);
    offset(copy, "nodeid_out", header, ChangeProtocol.COPY_TO_INODE, 28);
    offset(copy, "fh_out", header, ChangeProtocol.COPY_TO_HANDLE, 28);
    offset(copy, "off_out", header, ChangeProtocol.COPY_TO_OFFSET, 28);
    offset(copy, "len", header, ChangeProtocol.COPY_LENGTH, 28);
    size("fuse_copy_file_range_out", ChangeProtocol.COPY_OUT_SIZE, 45);
    number("FUSE_OPEN_KILL_SUIDGID", ChangeProtocol.OPEN_KILL_SUIDGID, 32);
    number("FUSE_WRITE_KILL_SUIDGID", ChangeProtocol.WRITE_KILL_SUIDGID, 32);
    number("FUSE_UNIQUE_RESEND", KernelProtocol.RESENT, 40);
    number("FUSE_ATOMIC_O_TRUNC", KernelProtocol.ATOMIC_O_TRUNC, 0);
    number("FUSE_AUTO_INVAL_DATA", KernelProtocol.AUTO_INVAL_DATA, 20);
    number("FUSE_READDIRPLUS_AUTO", KernelProtocol.READDIRPLUS_AUTO, 21);
    number("FUSE_ASYNC_DIO", KernelProtocol.ASYNC_DIO, 22);
    number("FUSE_HANDLE_KILLPRIV_V2", KernelProtocol.HANDLE_KILLPRIV_V2, 32);
    number("FOPEN_NOFLUSH", KernelProtocol.FOPEN_NOFLUSH, 35);
  }

  private void answers() {
    size("fuse_out_header", KernelProtocol.OUT_HEADER_SIZE, 0);
    offset("fuse_out_header", "len", 0, KernelProtocol.OUT_LENGTH, 0);
    offset("fuse_out_header", "error", 0, KernelProtocol.OUT_ERROR, 0);
    offset("fuse_out_header", "unique", 0, KernelProtocol.OUT_UNIQUE, 0);
    size("fuse_init_out", KernelProtocol.INIT_OUT_SIZE, 23);
    offset("fuse_init_out", "max_readahead", 0, 8, 0);
    offset("fuse_init_out", "flags", 0, 12, 0);
    offset("fuse_init_out", "max_background", 0, 16, 0);
    offset("fuse_init_out", "congestion_threshold", 0, 18, 0);
    offset("fuse_init_out", "max_write", 0, 20, 0);
    offset("fuse_init_out", "time_gran", 0, 24, 23);
    offset("fuse_init_out", "max_pages", 0, 28, 28);
    offset("fuse_init_out", "flags2", 0, 32, 36);
    offset("fuse_init_out", "max_stack_depth", 0, 36, 40);
    size("fuse_lseek_out", KernelProtocol.LSEEK_OUT_SIZE, 24);
    size("fuse_getxattr_out", KernelProtocol.XATTR_OUT_SIZE, 0);
    size("fuse_entry_out", KernelProtocol.ENTRY_OUT_SIZE, 0);
    offset("fuse_entry_out", "attr", 0, KernelProtocol.ENTRY_OUT_ATTR, 0);
    offset("fuse_entry_out", "generation", 0, KernelProtocol.ENTRY_OUT_GENERATION, 0);
    offset("fuse_entry_out", "entry_valid", 0, 16, 0);
    offset("fuse_entry_out", "attr_valid", 0, 24, 0);
    size("fuse_attr_out", KernelProtocol.ATTR_OUT_SIZE, 0);
    offset("fuse_attr_out", "attr", 0, KernelProtocol.ATTR_OUT_ATTR, 0);
    size("fuse_statfs_out", KernelProtocol.STATFS_OUT_SIZE, 0);
    size("fuse_dirent", KernelProtocol.DIRENT_SIZE, 0);
    offset("fuse_direntplus", "dirent", 0, KernelProtocol.ENTRY_OUT_SIZE, 21);
    size("fuse_statx_out", KernelProtocol.STATX_OUT_SIZE, 39);
    offset("fuse_statx_out", "stat", 0, KernelProtocol.STATX_OUT_STATX, 39);
    size("fuse_open_out", KernelProtocol.OPEN_OUT_SIZE, 0);
    offset("fuse_open_out", "open_flags", 0, 8, 0);
    offset("fuse_open_out", "backing_id", 0, 12, 40);
    String[] attributes = {
      "ino",
      "size",
      "blocks",
      "atime",
      "mtime",
      "ctime",
      "atimensec",
      "mtimensec",
      "ctimensec",
      "mode",
      "nlink",
      "uid",
      "gid",
      "rdev",
      "blksize"
    };
    int at = 0;
    for (int i = 0; i < attributes.length; i++) {
      offset("fuse_attr", attributes[i], 0, at, 0);
      at += i < 6 ? 8 : 4;
    }
    for (int name : new int[] {1, 7, 8, 9, 255}) {
      String expression = "FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + " + name + ")";
      number(expression, KernelProtocol.direntSize(name), 0);
    }
  }

  private void constants() {
    number("FUSE_KERNEL_VERSION", KernelProtocol.MAJOR, 0);
    number("FUSE_ROOT_ID", PmfsFileSystem.ROOT, 0);
    number("FUSE_ASYNC_READ", KernelProtocol.ASYNC_READ, 0);
    number("FUSE_BIG_WRITES", KernelProtocol.BIG_WRITES, 0);
    number("FUSE_DO_READDIRPLUS", KernelProtocol.DO_READDIRPLUS, 21);
    number("FUSE_NO_OPEN_SUPPORT", KernelProtocol.NO_OPEN_SUPPORT, 23);
    number("FUSE_PARALLEL_DIROPS", KernelProtocol.PARALLEL_DIROPS, 25);
    number("FUSE_MAX_PAGES", KernelProtocol.MAX_PAGES, 28);
    number("FUSE_CACHE_SYMLINKS", KernelProtocol.CACHE_SYMLINKS, 28);
    number("FUSE_NO_OPENDIR_SUPPORT", KernelProtocol.NO_OPENDIR_SUPPORT, 29);
    number("FUSE_EXPLICIT_INVAL_DATA", KernelProtocol.EXPLICIT_INVAL_DATA, 30);
    number("FUSE_INIT_EXT", KernelProtocol.INIT_EXT, 36);
    number("FUSE_PASSTHROUGH", KernelProtocol.PASSTHROUGH, 40);
    number("FUSE_DEV_IOC_CLONE", DeviceChannel.CLONE, 32);
    number("FOPEN_CACHE_DIR", KernelProtocol.FOPEN_CACHE_DIR, 28);
    number("FOPEN_KEEP_CACHE", KernelProtocol.FOPEN_KEEP_CACHE, 0);
    number("FOPEN_PASSTHROUGH", KernelProtocol.FOPEN_PASSTHROUGH, 40);
    size("fuse_backing_map", DeviceRegistry.BACKING_MAP_SIZE, 40);
    offset("fuse_backing_map", "fd", 0, 0, 40);
    number("FUSE_DEV_IOC_BACKING_OPEN", DeviceRegistry.BACKING_OPEN, 40);
    number("FUSE_DEV_IOC_BACKING_CLOSE", DeviceRegistry.BACKING_CLOSE, 40);
  }

  @TestFactory
  Stream<DynamicTest> number_isTheHeaders(@TempDir Path directory) throws Exception {
    assumeTrue(Files.exists(HEADER), "no " + HEADER + " (Debian package linux-libc-dev)");
    assumeTrue(hasCompiler(), "no gcc");
    requests();
    changes();
    answers();
    constants();
    Map<String, Long> header = compileAndRun(directory);
    return numbers.stream()
        .map(number -> DynamicTest.dynamicTest(number.expression, () -> compare(number, header)));
  }

  private static boolean hasCompiler() throws InterruptedException {
    try {
      return new ProcessBuilder("gcc", "--version")
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor()
          == 0;
    } catch (IOException e) {
      return false;
    }
  }

  private static void compare(HeaderNumber number, Map<String, Long> header) {
    Long value = header.get(number.expression);
    assumeTrue(
        value != null, "the header is older than version 7." + number.sinceMinor + " of FUSE");
    assertThat(number.ours).isEqualTo(value);
  }

  private Map<String, Long> compileAndRun(Path directory) throws IOException {
    StringBuilder program =
        new StringBuilder(
            """
            #include <stddef.h>
            #include <stdint.h>
            #include <stdio.h>
            #include <sys/ioctl.h>
            #include <linux/fuse.h>
            int main(void) {
            """);
    for (HeaderNumber number : numbers) {
      program.append(
          """
          #if FUSE_KERNEL_MINOR_VERSION >= %d
            printf("%%lld %s\\n", (long long) (%s));
          #endif
          """
              .formatted(number.sinceMinor, number.expression, number.expression));
    }
    program.append("  return 0;\n}\n");
    Files.writeString(directory.resolve("numbers.c"), program);
    String output = Shell.run(directory, "gcc -o numbers numbers.c && ./numbers");
    Map<String, Long> values = new HashMap<>();
    output
        .lines()
        .forEach(
            line -> {
              String[] parts = line.split(" ", 2);
              values.put(parts[1], Long.parseLong(parts[0]));
            });
    return values;
  }
}
