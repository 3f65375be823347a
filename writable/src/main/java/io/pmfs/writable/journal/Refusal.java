package io.pmfs.writable.journal;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;

/**
 * The error with which the source, or the node that has the data, refused a change.
 *
 * @param isAside whether it is permanent: the change is retried only on the user's request, or with
 *     a later one of the same file
 * @param isOfNode whether the node refused, not the source
 */
public record Refusal(Errno errno, String reason, boolean isAside, boolean isOfNode) {
  public static Refusal of(FsException e) {
    String text = String.valueOf(e.getMessage());
    boolean isOfNode = e.getCause() instanceof IOException;
    return new Refusal(
        e.errno(),
        isOfNode ? text.substring(text.indexOf(": ") + 2) : text,
        !isOfNode && !mayPass(e.errno()),
        isOfNode);
  }

  /** Whether only a retry may help. */
  private static boolean mayPass(Errno errno) {
    return switch (errno) {
      case EPERM, EACCES, EXDEV, ENAMETOOLONG, EINVAL, EILSEQ, EFBIG, EROFS, EOPNOTSUPP -> false;
      default -> true;
    };
  }

  public static boolean isOfRoom(Errno errno) {
    return errno == Errno.ENOSPC || errno == Errno.EDQUOT;
  }

  public boolean isOfRoom() {
    return isOfRoom(errno);
  }

  public FsException toException() {
    return new FsException(errno, (isOfNode ? "" : "the source: ") + reason);
  }

  public byte[] encode() {
    return new Encoder()
        .number(errno.number())
        .name(FileName.of(reason))
        .flag(isAside)
        .flag(isOfNode)
        .toBytes();
  }

  public static Refusal decode(byte[] value) {
    Decoder in = new Decoder(value);
    return new Refusal(Errno.of(in.small()), in.name().toString(), in.isNext(), in.isNext());
  }
}
