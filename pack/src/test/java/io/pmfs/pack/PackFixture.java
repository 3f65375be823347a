package io.pmfs.pack;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.shards.PlainDirectory;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;

/** A source in memory, a directory to pack it to, and what is in there. */
final class PackFixture {
  final FakeStore source;
  final FaultyStore faulty;
  final Path target;
  String sourceName = "/source";
  PackProgress progress = new PackProgress();
  long shardBytes = 64 << 10;
  PackOrder order = PackOrder.parse("name");
  PackCompression compression = PackCompression.NONE;
  boolean skipUnreadable;
  Packer.Stores stores = PlainDirectory::new;

  PackFixture(Path target) {
    this(new FakeStore(), target);
  }

  PackFixture(FakeStore source, Path target) {
    this.source = source;
    this.faulty = new FaultyStore(source);
    this.target = target;
  }

  PackSettings settings() {
    return new PackSettings(
        sourceName, target, shardBytes, compression, order, 3, skipUnreadable, "test");
  }

  Packer packer() {
    progress = new PackProgress();
    return new Packer(faulty, settings(), stores, 2, progress);
  }

  PackResult pack() throws PackException, IOException, FsException, InterruptedException {
    return packer().run();
  }

  List<PlannedShard> plan() throws FsException, InterruptedException {
    SourceTree tree = new SourceWalk(source, 3, new PackProgress()).run();
    return PackPlan.of(tree, order, shardBytes);
  }

  static List<String> names(PlannedShard shard) {
    return shard.files().stream().map(PlannedFile::toString).toList();
  }

  List<List<String>> plannedNames() throws FsException, InterruptedException {
    return plan().stream().map(PackFixture::names).toList();
  }

  /** Names in the target directory, sorted. */
  List<String> written() {
    if (!Files.exists(target)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(target)) {
      return files.map(f -> f.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Members of one shard, in order, as another reader sees them; names one char a byte. */
  List<TarArchiveEntry> members(String shard) throws IOException {
    List<TarArchiveEntry> members = new ArrayList<>();
    try (TarArchiveInputStream tar =
        new TarArchiveInputStream(Files.newInputStream(target.resolve(shard)), "ISO-8859-1")) {
      for (TarArchiveEntry e = tar.getNextEntry(); e != null; e = tar.getNextEntry()) {
        members.add(e);
      }
    }
    return members;
  }

  List<String> memberNames(String shard) throws IOException {
    return members(shard).stream().map(TarArchiveEntry::getName).toList();
  }

  /** By path: the content of every regular file in all shards. */
  Map<String, byte[]> contents() throws IOException {
    Map<String, byte[]> contents = new TreeMap<>();
    for (String shard : written()) {
      if (!shard.endsWith(".tar")) {
        continue;
      }
      try (TarArchiveInputStream tar =
          new TarArchiveInputStream(Files.newInputStream(target.resolve(shard)), "ISO-8859-1")) {
        for (TarArchiveEntry e = tar.getNextEntry(); e != null; e = tar.getNextEntry()) {
          if (e.isFile() && !e.isLink() && !e.isSymbolicLink()) {
            contents.put(e.getName(), tar.readAllBytes());
          }
        }
      }
    }
    return contents;
  }

  byte[] expected(String path) {
    FileName name = FileName.of(path);
    long size = source.expectedStatus(name).attributes().size();
    return source.expected(name, 0, Math.toIntExact(size));
  }
}
