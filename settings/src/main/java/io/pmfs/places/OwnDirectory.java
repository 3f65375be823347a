package io.pmfs.places;

import io.pmfs.machine.ByteSize;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A directory that pmfs creates for itself. If it is sticky, others may create entries in it; each
 * dataset's directory is then checked when used.
 *
 * @param what its purpose, as shown in messages
 */
public record OwnDirectory(Path path, String what) {
  /**
   * Creates the directory with mode 0700 if it is missing, and tries to write to it.
   *
   * @param remedy what to do if it cannot be used
   * @param user the future owner of a directory that only root can create; null for this process's
   *     user
   */
  public void make(String remedy, @Nullable String user) throws MountFailure {
    try {
      OwnPath.ofProcess().sharedDirectory(path);
      // access(2) always succeeds for root, even on a read-only file system: try it.
      Files.delete(Files.createTempFile(path, ".pmfs", ".probe"));
    } catch (IOException e) {
      throw failure(e, remedy, user);
    }
  }

  public MountFailure failure(IOException e, String remedy, @Nullable String user) {
    if (Reason.isNoRoom(e)) {
      return MountFailure.usage(path, what, "no room on its disk", "free some, or " + remedy);
    }
    return MountFailure.usage(
        path,
        what,
        "cannot be used: " + Reason.of(e),
        user == null
            ? remedy
            : remedy + ", or make it: install -d -m 700 -o %s %s".formatted(user, path));
  }

  /** Examines the disk of the directory, which need not exist; changes nothing. */
  public TierPlace.Examined examine(Capacity keepFree) throws MountFailure {
    Path existing = DefaultTier.nearestExisting(path);
    try {
      OwnPath.ofProcess().check(path);
      FileStore disk = Files.getFileStore(existing);
      long all = disk.getTotalSpace();
      long free = disk.getUsableSpace();
      if (!Files.isWritable(existing)) {
        throw MountFailure.usage(path + ": cannot be written; choose another place");
      }
      String text =
          "%s: %s of %s free".formatted(path, ByteSize.format(free), ByteSize.format(all));
      return free > keepFree.on(all)
          ? new TierPlace.Examined(true, text)
          : new TierPlace.Examined(
              false,
              "%s, but --keep-free %s leaves no room for copies: make room or choose another place"
                  .formatted(text, keepFree));
    } catch (IOException e) {
      throw MountFailure.usage(path + ": " + Reason.of(e) + "; choose another place");
    }
  }
}
