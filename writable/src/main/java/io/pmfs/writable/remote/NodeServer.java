package io.pmfs.writable.remote;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.NodeFiles;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers the owner of a writable mount from this node's data files. Safe for use by many threads.
 */
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
  public byte[] answer(String name, byte[] body) {
    Method method = Message.TO_NODE.get(name);
    if (method == null) {
      throw new IllegalArgumentException(name + ": no such request");
    }
    try {
      Message.Request request = new Message.Request(body);
      if (!request.isOurVersion) {
        return Message.answer(Message.Kind.OTHER_VERSION);
      }
      if (!files.isReady()) {
        return Message.answer(Message.Kind.NOT_JOINED);
      }
      Object[] arguments = request.arguments(method);
      for (Object argument : arguments) {
        if (argument == null) {
          throw new IllegalArgumentException(name + ": a missing argument");
        }
      }
      return Message.answer(Message.result(method), method.invoke(files, arguments));
    } catch (IOException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof FsException failure) {
        return Message.failure(failure);
      }
      log.error("cannot answer the owner's {}", name, e.getCause());
      return Message.failure(new FsException(Errno.EIO, "the node failed; see its log"));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }
}
