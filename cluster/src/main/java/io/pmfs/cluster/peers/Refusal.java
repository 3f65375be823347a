package io.pmfs.cluster.peers;

import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.metadata.PathText;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import org.jspecify.annotations.Nullable;

/** The reason for refusing a request: an HTTP status and one line. */
public final class Refusal extends Exception {
  private final HttpResponseStatus status;
  private final @Nullable Errno errno;
  private final @Nullable String clock;

  public Refusal(HttpResponseStatus status, String line) {
    this(status, line, null, null);
  }

  private Refusal(
      HttpResponseStatus status, String line, @Nullable Errno errno, @Nullable String clock) {
    super(line, null, false, false);
    this.status = status;
    this.errno = errno;
    this.clock = clock;
  }

  /**
   * For a request that was signed at the wrong time.
   *
   * @param clock the server's time, so that the sender can sign again
   */
  static Refusal ofTime(String line, String clock) {
    return new Refusal(HttpResponseStatus.UNAUTHORIZED, line, null, clock);
  }

  /** For a failure of the source or of a tier. */
  public static Refusal of(FsException failure) {
    Errno errno = failure.errno();
    HttpResponseStatus status =
        switch (errno) {
          case ENOENT, ENOTDIR, ENODATA -> HttpResponseStatus.NOT_FOUND;
          case EACCES, EPERM -> HttpResponseStatus.FORBIDDEN;
          case EISDIR, EINVAL, ELOOP, ESTALE -> HttpResponseStatus.CONFLICT;
          default -> HttpResponseStatus.BAD_GATEWAY;
        };
    return new Refusal(status, String.valueOf(failure.getMessage()), errno, null);
  }

  /** For a refusal or failure of this node itself. */
  public static Refusal of(PeerException failure, boolean onlyCopies) {
    HttpResponseStatus status = HttpResponseStatus.BAD_GATEWAY;
    if (failure.kind() == PeerException.Kind.OTHER_VERSION) {
      status = HttpResponseStatus.PRECONDITION_FAILED;
    } else if (failure.kind() == PeerException.Kind.BUSY) {
      status = HttpResponseStatus.SERVICE_UNAVAILABLE;
    } else if (failure.kind() == PeerException.Kind.REFUSED) {
      status =
          onlyCopies ? HttpResponseStatus.GATEWAY_TIMEOUT : HttpResponseStatus.MISDIRECTED_REQUEST;
    }
    return new Refusal(status, String.valueOf(failure.getMessage()));
  }

  public HttpResponseStatus status() {
    return status;
  }

  @Nullable
  public Errno errno() {
    return errno;
  }

  /** The value of the header {@link RequestSignature#CLOCK}; null for none. */
  @Nullable
  public String clock() {
    return clock;
  }

  /** The reason, for people: one line of bounded size. */
  public String line() {
    String text = PathText.printable(String.valueOf(getMessage()));
    return text.length() > 500 ? text.substring(0, 500) : text;
  }
}
