package io.pmfs.fuse.protocol;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The operations of the kernel's requests (enum fuse_opcode of linux/fuse.h). */
public enum Opcode {
  LOOKUP(1),
  FORGET(2),
  GETATTR(3),
  SETATTR(4),
  READLINK(5),
  SYMLINK(6),
  MKNOD(8),
  MKDIR(9),
  UNLINK(10),
  RMDIR(11),
  RENAME(12),
  LINK(13),
  OPEN(14),
  READ(15),
  WRITE(16),
  STATFS(17),
  RELEASE(18),
  FSYNC(20),
  SETXATTR(21),
  GETXATTR(22),
  LISTXATTR(23),
  REMOVEXATTR(24),
  FLUSH(25),
  INIT(26),
  OPENDIR(27),
  READDIR(28),
  RELEASEDIR(29),
  FSYNCDIR(30),
  ACCESS(34),
  CREATE(35),
  INTERRUPT(36),
  DESTROY(38),
  IOCTL(39),
  BATCH_FORGET(42),
  FALLOCATE(43),
  READDIRPLUS(44),
  RENAME2(45),
  LSEEK(46),
  COPY_FILE_RANGE(47),
  SYNCFS(50),
  TMPFILE(51),
  STATX(52),
  COPY_FILE_RANGE_64(53);

  /** The exclusive upper bound of opcode numbers. */
  static final int NUMBERS = 54;

  private static final @Nullable Opcode[] BY_NUMBER = new @Nullable Opcode[NUMBERS];

  static {
    for (Opcode opcode : values()) {
      BY_NUMBER[opcode.number] = opcode;
    }
  }

  private final int number;
  private final String word = name().toLowerCase(Locale.ROOT);

  Opcode(int number) {
    this.number = number;
  }

  /** The name in FUSE, in lower case. */
  public String word() {
    return word;
  }

  /** Whether the kernel waits for an answer. */
  public boolean isAnswered() {
    return this != FORGET && this != BATCH_FORGET && this != INTERRUPT;
  }

  public int number() {
    return number;
  }

  /** The opcode with that number; null if it is not listed here. */
  public static @Nullable Opcode of(int number) {
    return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : null;
  }
}
