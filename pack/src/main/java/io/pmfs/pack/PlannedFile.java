package io.pmfs.pack;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.util.Arrays;
import java.util.Comparator;
import org.apache.commons.compress.archivers.tar.TarConstants;

/**
 * A name of the source to pack that is not a directory, or the place of an empty directory. There
 * are millions of them: about 110 bytes each.
 */
final class PlannedFile {
  /** By directory, then by sample, then by name. */
  static final Comparator<PlannedFile> BY_NAME = PlannedFile::compareTo;

  private static final FileName NONE = FileName.of("");

  final PlannedDirectory directory;
  private final byte[] name;
  private final int mode;
  final long size;

  /** A hash of all attributes, which detects any change. */
  final long fingerprint;

  private final int headerBytes;

  /** Shared by all names of a hard-linked file; 0 for a file with one name. */
  final int link;

  /**
   * Files with the same number stay together in one shard; shards follow the order of these
   * numbers.
   */
  int unit;

  private PlannedFile(
      PlannedDirectory directory,
      byte[] name,
      int mode,
      long size,
      long fingerprint,
      int headerBytes,
      int link) {
    this.directory = directory;
    this.name = name;
    this.mode = mode;
    this.size = size;
    this.fingerprint = fingerprint;
    this.headerBytes = headerBytes;
    this.link = link;
  }

  static PlannedFile of(
      PlannedDirectory directory, FileName name, Attributes attributes, int link) {
    FileName path = directory.path.resolve(name);
    // Only the length of a symbolic link's target is known yet: count it as if it needed a record.
    FileName target =
        attributes.type() == FileType.SYMBOLIC_LINK ? linkOf(attributes.size()) : NONE;
    long size = attributes.type() == FileType.REGULAR ? attributes.size() : 0;
    TarMember member = new TarMember(path, TarConstants.LF_NORMAL, target, attributes, size);
    return new PlannedFile(
        directory,
        name.bytes(),
        attributes.mode(),
        size,
        Fingerprint.of(attributes),
        Math.toIntExact(member.headerBytes()),
        link);
  }

  /** The place of an empty directory in the order of files. */
  static PlannedFile placeOf(PlannedDirectory directory) {
    return new PlannedFile(directory, new byte[0], directory.attributes.mode(), 0, 0, 0, 0);
  }

  private static FileName linkOf(long size) {
    byte[] longest = new byte[Math.toIntExact(Math.max(TarConstants.NAMELEN, size))];
    Arrays.fill(longest, (byte) 'x');
    return FileName.of(longest);
  }

  boolean isPlace() {
    return name.length == 0;
  }

  FileType type() {
    return FileType.ofMode(mode);
  }

  FileName path() {
    return isPlace() ? directory.path : directory.path.resolve(FileName.of(name));
  }

  /** The size in a shard, headers included. */
  long tarBytes() {
    return headerBytes + TarMember.padded(size);
  }

  /** The maximum size in a shard if the file is stored as a link to another name. */
  long linkBytes(PlannedFile first) {
    TarMember target =
        new TarMember(
            NONE, TarConstants.LF_LINK, linkOf(first.path().size()), directory.attributes, 0);
    return headerBytes + target.headerBytes();
  }

  /**
   * Whether both belong to one sample: names in the same directory that are equal up to the first
   * dot.
   */
  boolean sharesSampleWith(PlannedFile other) {
    return directory == other.directory && compareKeys(other) == 0 && !isPlace();
  }

  private int compareKeys(PlannedFile other) {
    return Arrays.compareUnsigned(name, 0, keyLength(), other.name, 0, other.keyLength());
  }

  /**
   * The length of the key as WebDataset defines it; a dot at the very beginning is part of the key.
   */
  private int keyLength() {
    for (int i = 1; i < name.length; i++) {
      if (name[i] == '.') {
        return i;
      }
    }
    return name.length;
  }

  private int compareTo(PlannedFile other) {
    if (directory != other.directory) {
      return Integer.compare(directory.rank, other.directory.rank);
    }
    int byKey = compareKeys(other);
    return byKey != 0 ? byKey : Arrays.compareUnsigned(name, other.name);
  }

  @Override
  public String toString() {
    return path().toString();
  }
}
