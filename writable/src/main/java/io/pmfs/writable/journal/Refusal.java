package io.pmfs.writable.journal;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;

/**
 * What the source, or a node that has the data, answered to a change.
 *
 * @param isAside whether it will not pass by itself: the change is tried again only when the user
 *     asks for it, or together with a later one of the same file
 * @param isOfNode whether the node answered, and not the source
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

  /** Whether trying again, and nothing else, may help. */
  private static boolean mayPass(Errno errno) {
    return switch (errno) {
      case EPERM, EACCES, EXDEV, ENAMETOOLONG, EINVAL, EILSEQ, EFBIG, EROFS, EOPNOTSUPP -> false;
      default -> true;
    };
  }

  /** Whether an answer says that there is no room. */
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
