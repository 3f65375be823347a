package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The result of scanning some bytes; of members with the same path only the last. */
final class Scan implements MemberSink {
  final Map<String, ShardMember> members = new LinkedHashMap<>();
  final Map<Warning, List<String>> warnings = new EnumMap<>(Warning.class);
  long passed;

  static Scan of(byte[] tar) throws ShardException, FsException {
    return of(tar, false);
  }

  static Scan of(byte[] tar, boolean nested) throws ShardException, FsException {
    Scan scan = new Scan();
    HeaderReader in =
        new HeaderReader(
            new MemoryFile(tar), tar.length, ByteBuffer.allocateDirect(HeaderReader.MAX_BYTES));
    new TarScanner(3, "s.tar", in, scan).scan(FileName.of(""), nested);
    return scan;
  }

  ShardMember member(String path) {
    ShardMember member = members.get(path);
    if (member == null) {
      throw new AssertionError(path + " is not in " + members.keySet());
    }
    return member;
  }

  @Override
  public void member(FileName path, ShardMember member) {
    members.put(path.toLatin1(), member);
  }

  @Override
  public void warn(Warning warning, String where) {
    warnings.computeIfAbsent(warning, w -> new ArrayList<>()).add(where);
  }

  @Override
  public void passed(long bytes) {
    passed += bytes;
  }
}
