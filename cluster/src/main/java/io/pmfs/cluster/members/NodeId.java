package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.DSYNC;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node's id, stored in a file beside the records of its copies: as long as these exist, the node
 * owns the same paths. The file has one line, the id and the host name, so that a state directory
 * copied to another host gets a new id.
 */
public final class NodeId {
  private static final Logger log = LoggerFactory.getLogger(NodeId.class);
  private static final String FILE = "node-id";

  private NodeId() {}

  /**
   * Returns the id that a state directory holds; creates a new one if there is none.
   *
   * <p>If the file cannot be read, or a new id not be written, the node gets an id that lasts as
   * long as this daemon. Peers see a new node then.
   */
  public static UUID of(Path state, String host) {
    Path file = state.resolve(FILE);
    try {
      String[] words = Files.readString(file, UTF_8).strip().split(" ", -1);
      if (words.length == 2 && words[1].equals(host)) {
        return UUID.fromString(words[0]);
      }
      log.info("{}: belongs to another host; this node gets a new id", file);
    } catch (NoSuchFileException e) {
      log.debug("{}: does not exist yet", file);
    } catch (IllegalArgumentException | MalformedInputException e) {
      log.warn("{}: is not a valid node id; this node gets a new one", file);
    } catch (IOException e) {
      log.warn("{}: {}; this node gets another id for now", file, e.toString());
      return UUID.randomUUID();
    }
    UUID id = UUID.randomUUID();
    Path next = state.resolve(FILE + ".new");
    try {
      Files.writeString(
          next, id + " " + host + "\n", UTF_8, CREATE, TRUNCATE_EXISTING, WRITE, DSYNC);
      Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      log.warn(
          "{}: {}; this node gets another id when its daemon starts again", file, e.toString());
    }
    return id;
  }
}
