package io.pmfs.posix;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import org.jspecify.annotations.Nullable;

/** Visits the files of a tree, ignoring those that disappear meanwhile. */
public abstract class RemainingFiles extends SimpleFileVisitor<Path> {
  @Override
  public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
    if (e instanceof NoSuchFileException) {
      return FileVisitResult.CONTINUE;
    }
    throw e;
  }

  @Override
  public FileVisitResult postVisitDirectory(Path directory, @Nullable IOException e)
      throws IOException {
    return e == null ? FileVisitResult.CONTINUE : visitFileFailed(directory, e);
  }
}
