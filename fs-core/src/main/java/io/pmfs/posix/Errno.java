package io.pmfs.posix;

/**
 * The POSIX error of a failure. The numbers are those of Linux (asm-generic/errno.h), the same on
 * x86-64 and AArch64.
 */
public enum Errno {
  EPERM(1),
  ENOENT(2),
  EINTR(4),
  EIO(5),
  ENXIO(6),
  E2BIG(7),
  EBADF(9),
  EAGAIN(11),
  ENOMEM(12),
  EACCES(13),
  EFAULT(14),
  EBUSY(16),
  EEXIST(17),
  EXDEV(18),
  ENODEV(19),
  ENOTDIR(20),
  EISDIR(21),
  EINVAL(22),
  ENFILE(23),
  EMFILE(24),
  ENOTTY(25),
  EFBIG(27),
  ENOSPC(28),
  EROFS(30),
  EMLINK(31),
  EPIPE(32),
  ERANGE(34),
  ENAMETOOLONG(36),
  ENOSYS(38),
  ENOTEMPTY(39),
  ELOOP(40),
  ENODATA(61),
  EREMOTE(66),
  EPROTO(71),
  EOVERFLOW(75),
  EILSEQ(84),
  EOPNOTSUPP(95),
  ENETDOWN(100),
  ENETUNREACH(101),
  ECONNRESET(104),
  ENOTCONN(107),
  ESHUTDOWN(108),
  ETIMEDOUT(110),
  ECONNREFUSED(111),
  EHOSTDOWN(112),
  EHOSTUNREACH(113),
  ESTALE(116),
  EREMOTEIO(121),
  EDQUOT(122);

  private static final Errno[] BY_NUMBER = byNumber();

  private final int number;

  Errno(int number) {
    this.number = number;
  }

  public int number() {
    return number;
  }

  /** The error with this number; EIO for numbers not listed here. */
  public static Errno of(int number) {
    return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : EIO;
  }

  private static Errno[] byNumber() {
    Errno[] table = new Errno[EDQUOT.number + 1];
    java.util.Arrays.fill(table, EIO);
    for (Errno errno : values()) {
      table[errno.number] = errno;
    }
    return table;
  }
}
