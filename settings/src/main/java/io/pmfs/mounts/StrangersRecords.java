package io.pmfs.mounts;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.system.StrangersDirectory;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The records of another user's daemons, read by root only to find these daemons: only from plain
 * files opened by checked descriptors, and only up to a limit. Calls can hang with the user's disk:
 * {@link KnownMounts} limits their time.
 */
final class StrangersRecords {
  /** The most mounts shown for one user. */
  static final int MOST_MOUNTS = 64;

  /** The most names read from the directory. */
  private static final int MOST_NAMES = 4096;

  private static final Pattern NAME = Pattern.compile("[0-9a-f]{16}(-\\d{1,10}-\\d{1,10})?");

  private final Path directory;
  private final long owner;

  StrangersRecords(Path directory, long owner) {
    this.directory = directory;
    this.owner = owner;
  }

  /**
   * The running daemons.
   *
   * @param problem one line about unusable records; null if there are none
   */
  record Living(List<DaemonRecord> entries, @Nullable String problem) {}

  /** All running daemons, sorted by the names of their files. */
  Living living() throws IOException {
    List<DaemonRecord> entries = new ArrayList<>();
    String problem = null;
    int bad = 0;
    try (StrangersDirectory opened = open()) {
      List<String> names = opened.names(MOST_NAMES + 1);
      boolean isWhole = names.size() <= MOST_NAMES;
      for (String file : names.stream().limit(MOST_NAMES).sorted().toList()) {
        String name = Registry.nameIn(file);
        try {
          if (name == null || !NAME.matcher(name).matches() || !isLocked(opened, name)) {
            continue;
          }
          DaemonRecord entry = entry(opened, name);
          if (entry != null && entries.size() == MOST_MOUNTS) {
            isWhole = false;
            break;
          }
          if (entry != null) {
            entries.add(entry);
          }
        } catch (IOException e) {
          bad++;
          problem = problem == null ? file + ": " + reason(e) : problem;
        }
      }
      if (bad > 1) {
        problem += "; and %d more records cannot be used".formatted(bad - 1);
      }
      if (!isWhole) {
        String more = "more than %d mounts or files; the rest is not shown".formatted(MOST_MOUNTS);
        problem = problem == null ? more : problem + "; " + more;
      }
    }
    return new Living(entries, problem);
  }

  /** The running daemon with these files, or null. */
  @Nullable DaemonRecord find(String name) throws IOException {
    try (StrangersDirectory opened = open()) {
      return isLocked(opened, name) ? entry(opened, name) : null;
    }
  }

  /** Like {@link #find}, including a dead daemon. */
  @Nullable DaemonRecord last(String name) throws IOException {
    try (StrangersDirectory opened = open()) {
      return entry(opened, name);
    }
  }

  boolean isRunning(String name) throws IOException {
    try (StrangersDirectory opened = open()) {
      return isLocked(opened, name);
    }
  }

  boolean isSaved(String name, String pid) throws IOException {
    try (StrangersDirectory opened = open()) {
      return text(opened, name + Registry.LOCK).equals(pid);
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  @Nullable MountOwner holder(String file) throws IOException {
    try (StrangersDirectory opened = open()) {
      MountOwner holder = Registry.parse(text(opened, file), MountOwner.class);
      return holder != null && holder.isSound() ? holder : null;
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private StrangersDirectory open() throws IOException {
    return StrangersDirectory.open(directory, owner);
  }

  /**
   * A record, with its control socket at the only valid path; null if there is none.
   *
   * @throws IOException if it cannot have been written by one of the user's daemons
   */
  private @Nullable DaemonRecord entry(StrangersDirectory opened, String name) throws IOException {
    DaemonRecord entry;
    try {
      entry = Registry.parse(text(opened, name + Registry.ENTRY), DaemonRecord.class);
    } catch (NoSuchFileException e) {
      return null;
    }
    if (entry == null || !entry.isSound() || !entry.name().equals(name)) {
      throw new IOException("not a record of a mount");
    }
    String socket = name + Registry.SOCKET;
    return opened.has(socket)
        ? entry.withSocket(directory.resolve(socket), entry.detached())
        : null;
  }

  private static String text(StrangersDirectory opened, String file) throws IOException {
    try (StrangersDirectory.OpenFile record = opened.open(file)) {
      if (record.size() > Registry.MAX_ENTRY_BYTES) {
        throw new IOException("larger than a record of a mount");
      }
      return new String(record.read(0, Registry.MAX_ENTRY_BYTES), UTF_8);
    }
  }

  private static boolean isLocked(StrangersDirectory opened, String name) throws IOException {
    try (StrangersDirectory.OpenFile lock = opened.open(name + Registry.LOCK)) {
      return lock.isLocked();
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  /** The reason without the path, which the caller adds. */
  private String reason(IOException e) {
    String reason = Reason.of(e);
    String path = directory + "/";
    return reason.startsWith(path) ? reason.replaceFirst("^[^:]*: ", "") : reason;
  }
}
