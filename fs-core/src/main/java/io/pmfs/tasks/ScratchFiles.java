package io.pmfs.tasks;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/** Creates nameless files, which disappear when closed, in the first directory where this works. */
public record ScratchFiles(List<Path> directories) {
  public ScratchFiles {
    directories = List.copyOf(directories);
  }

  /** Opens a new file for reading and writing. */
  public FileChannel create() throws IOException {
    IOException failure = new IOException("no directory for temporary files");
    for (Path directory : directories) {
      try {
        Path path = Files.createTempFile(directory, ".pmfs-", null);
        try {
          return FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
        } finally {
          Files.delete(path);
        }
      } catch (IOException e) {
        failure = e;
      }
    }
    throw failure;
  }
}
