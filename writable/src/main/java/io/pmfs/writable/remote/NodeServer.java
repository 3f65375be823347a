package io.pmfs.writable.remote;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.remote.RemoteNodes.NodeRequest;
import java.io.IOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Serves this node's data files to the owner of a writable mount. Thread-safe. */
public final class NodeServer {
  private static final Logger log = LoggerFactory.getLogger(NodeServer.class);

  private final NodeFiles files;

  public NodeServer(NodeFiles files) {
    this.files = files;
  }

  /**
   * Answers a request.
   *
   * @throws IllegalArgumentException with a one-line message, if it is malformed
   */
  public byte[] answer(String title, byte[] body) {
    NodeRequest request = NodeRequest.of(title);
    if (request == null) {
      throw new IllegalArgumentException(title + ": no such request");
    }
    try {
      MessageReader in = new MessageReader(body);
      if (!in.head().isOurVersion()) {
        return Message.sealed(Message.answer(Message.Kind.OTHER_VERSION));
      }
      if (!files.isReady()) {
        return Message.sealed(Message.answer(Message.Kind.NOT_JOINED));
      }
      return Message.sealed(answer(request, in));
    } catch (IOException e) {
      throw new IllegalArgumentException(title + ": " + e.getMessage(), e);
    } catch (FsException e) {
      return Message.failure(e);
    } catch (RuntimeException | Error e) {
      log.error("cannot answer the owner's {}", title, e);
      return Message.failure(new FsException(Errno.EIO, "the node failed; see its log"));
    }
  }

  private MessageWriter answer(NodeRequest request, MessageReader in)
      throws FsException, IOException {
    MessageWriter out = Message.answer(Message.Kind.RESULT);
    return switch (request) {
      case FREEZE -> out.frozen(files.freeze(in.file(), in.isNext()));
      case READ -> out.bytes(files.read(in.file(), in.number(), in.small()));
      case SET_TIMES -> {
        files.setTimes(in.file(), in.time(), in.time());
        yield out;
      }
      case COPY -> {
        files.copy(in.file(), in.target(), in.number(), in.number());
        yield out;
      }
    };
  }
}
