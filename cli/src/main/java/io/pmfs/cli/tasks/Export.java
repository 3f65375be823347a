package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.CopyOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Copies files out of a mount, with the rights of the caller. */
final class Export {
  private static final CopyOption[] OPTIONS = {
    StandardCopyOption.COPY_ATTRIBUTES, LinkOption.NOFOLLOW_LINKS
  };

  private static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

  private final Invocation invocation;
  private long count;

  Export(Invocation invocation) {
    this.invocation = invocation;
  }

  /**
   * Copies a file, or a directory recursively, into a directory; returns the exit status.
   *
   * @throws MountFailure if the target exists, or on an error
   */
  int copy(Path from, Path directory) throws MountFailure {
    Path name = from.getFileName();
    if (!Files.isDirectory(directory)) {
      throw MountFailure.usage(directory + ": not a directory; create it first");
    }
    Path to = name == null ? directory.resolve("export") : directory.resolve(name);
    try {
      Files.walkFileTree(from, new Copying(from, to));
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, "--export: %s: %s".formatted(from, Reason.of(e)), e);
    }
    invocation.say(
        String.format(
            Locale.ROOT,
            count == 1 ? "%s: %,d file copied to %s" : "%s: %,d files copied to %s",
            from,
            count,
            to));
    return ExitStatus.DONE;
  }

  private final class Copying extends SimpleFileVisitor<Path> {
    private final Path from;
    private final Path to;

    Copying(Path from, Path to) {
      this.from = from;
      this.to = to;
    }

    private Path target(Path path) {
      return to.resolve(from.relativize(path));
    }

    @Override
    public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes attributes)
        throws IOException {
      // Private until complete; the final mode is set last.
      Files.createDirectory(target(path), PRIVATE);
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) throws IOException {
      Path file = from.equals(path) ? to : target(path);
      Files.copy(path, file, OPTIONS);
      count++;
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult postVisitDirectory(Path path, @Nullable IOException failure)
        throws IOException {
      if (failure != null) {
        throw failure;
      }
      Files.setPosixFilePermissions(target(path), Files.getPosixFilePermissions(path));
      Files.setLastModifiedTime(target(path), Files.getLastModifiedTime(path));
      return FileVisitResult.CONTINUE;
    }
  }
}
