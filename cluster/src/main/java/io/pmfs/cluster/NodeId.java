package io.pmfs.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;

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
 * Who a node is to its peers, kept with the records of its copies: as long as these are there it
 * owns what it owned. A file of one line, the id and the host's name: a state directory that was
 * copied to another host makes another node.
 */
final class NodeId {
  private static final Logger log = LoggerFactory.getLogger(NodeId.class);
  private static final String FILE = "node-id";

  private NodeId() {}

  /**
   * The id that is kept in a directory, or a new one that is from now on.
   *
   * <p>One that cannot be read or kept is this daemon's only: its peers ask a new node.
   */
  static UUID of(Path state, String host) {
    Path file = state.resolve(FILE);
    try {
      String[] words = Files.readString(file, UTF_8).strip().split(" ", -1);
      if (words.length == 2 && words[1].equals(host)) {
        return UUID.fromString(words[0]);
      }
      log.info("{}: is another host's; this one begins anew", file);
    } catch (NoSuchFileException e) {
      log.debug("{}: there is none yet", file);
    } catch (IllegalArgumentException | MalformedInputException e) {
      log.warn("{}: is not a node's id; this node begins anew", file);
    } catch (IOException e) {
      log.warn("{}: {}; this node begins anew", file, e.toString());
    }
    UUID id = UUID.randomUUID();
    Path next = state.resolve(FILE + ".new");
    try {
      Files.writeString(next, id + " " + host + "\n", UTF_8);
      Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      log.warn("{}: {}; this node begins anew with its next daemon", file, e.toString());
    }
    return id;
  }
}
