package io.pmfs.shards;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A directory through the JDK: sufficient for shards, which have plain names here. */
public final class PlainDirectory implements BackingStore {
  private final Path root;
  private int namesListed;

  public PlainDirectory(Path root) {
    this.root = root;
  }

  private Path at(FileName path) {
    return root.resolve(path.toString());
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return status(at(path));
  }

  private static SourceStatus status(Path path) throws FsException {
    try {
      Instant modified = Files.getLastModifiedTime(path, LinkOption.NOFOLLOW_LINKS).toInstant();
      return new SourceStatus(
          new FileIdentity(0, number(path, "ino")),
          new Attributes(
              (int) number(path, "mode"),
              (int) number(path, "nlink"),
              (int) number(path, "uid"),
              (int) number(path, "gid"),
              0,
              number(path, "size"),
              0,
              modified,
              modified,
              modified));
    } catch (IOException e) {
      throw failure(path, e);
    }
  }

  private static long number(Path path, String attribute) throws IOException {
    Object value = Files.getAttribute(path, "unix:" + attribute, LinkOption.NOFOLLOW_LINKS);
    return value instanceof Number number ? number.longValue() : 0;
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    List<FileName> names;
    try (Stream<Path> entries = Files.list(at(directory))) {
      names = entries.sorted().map(entry -> FileName.of(entry.getFileName().toString())).toList();
    } catch (IOException e) {
      throw failure(at(directory), e);
    }
    for (FileName name : names) {
      namesListed++;
      if (!batches.accept(List.of(name))) {
        return;
      }
    }
  }

  /** How many names were listed. */
  int namesListed() {
    return namesListed;
  }

  @Override
  public FileName readSymbolicLink(FileName path) {
    throw new UnsupportedOperationException();
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    try {
      Path file = at(path);
      return new OpenFile(file, FileChannel.open(file));
    } catch (IOException e) {
      throw failure(at(path), e);
    }
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) {
    return Map.of();
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return SourceAccess.withoutLists(status(path));
  }

  @Override
  public StoreStatistics statistics() {
    return new StoreStatistics(1, 1, 1, 1, 1, 1, 1, 255);
  }

  @Override
  public void close() {}

  private static FsException failure(Path path, IOException e) {
    Errno errno = e instanceof NoSuchFileException ? Errno.ENOENT : Errno.EIO;
    return new FsException(errno, path.toString(), e);
  }

  private record OpenFile(Path path, FileChannel channel) implements SourceFile {
    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int first = destination.position();
      try {
        while (destination.hasRemaining()
            && channel.read(destination, offset + destination.position() - first) > 0) {}
      } catch (IOException e) {
        throw failure(path, e);
      }
      return destination.position() - first;
    }

    @Override
    public long seekData(long offset) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long seekHole(long offset) {
      throw new UnsupportedOperationException();
    }

    @Override
    public SourceStatus status() throws FsException {
      return PlainDirectory.status(path);
    }

    @Override
    public void close() {
      try {
        channel.close();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
