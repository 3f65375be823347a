package io.pmfs.pack;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class TarMemberTest {
  private static final FileName NONE = FileName.of("");
  private static final Instant WHOLE_SECOND = Instant.ofEpochSecond(1_700_000_000);

  @TempDir Path temporary;

  private static Attributes attributes(int uid, Instant time) {
    return new Attributes(0100640, 1, uid, 7, 0, 3, 8, time, time, time);
  }

  private static TarMember file(FileName path) {
    return file(path, attributes(5, WHOLE_SECOND));
  }

  private static TarMember file(FileName path, Attributes attributes) {
    return new TarMember(path, TarConstants.LF_NORMAL, NONE, attributes, 3);
  }

  private static byte[] tar(List<TarMember> members) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    TarArchiveOutputStream tar = TarMember.stream(bytes);
    for (TarMember member : members) {
      member.put(tar);
      tar.write(new byte[(int) member.size()]);
      tar.closeArchiveEntry();
    }
    tar.finish();
    return bytes.toByteArray();
  }

  /** What a program prints about a shard, which it reads without a word on standard error. */
  private String read(List<TarMember> members, String... program) throws Exception {
    Path shard = Files.write(temporary.resolve("shard.tar"), tar(members));
    List<String> line = new ArrayList<>(List.of(program));
    line.add(shard.toString());
    ProcessBuilder builder = new ProcessBuilder(line);
    builder.environment().put("TZ", "UTC");
    builder.environment().put("LC_ALL", "C.UTF-8");
    Path errors = temporary.resolve("errors");
    Process process = builder.redirectError(errors.toFile()).start();
    String output = new String(process.getInputStream().readAllBytes(), ISO_8859_1);
    assertThat(process.waitFor()).isZero();
    assertThat(errors).isEmptyFile();
    return output;
  }

  private static final String[] GNU_TAR = {"tar", "--quoting-style=literal", "-tf"};
  private static final String[] PYTHON = {
    "python3",
    "-c",
    "import os,sys,tarfile\n"
        + "for m in tarfile.open(sys.argv[1]): sys.stdout.buffer.write(os.fsencode(m.name)+b'\\n')"
  };

  private static FileName name(String bytes, int size) {
    return FileName.ofLatin1((bytes + "/").repeat(size).substring(0, size));
  }

  private void assertNames(List<FileName> names) throws Exception {
    List<TarMember> members = names.stream().map(TarMemberTest::file).toList();
    List<String> expected = names.stream().map(FileName::toLatin1).toList();
    assertThat(read(members, GNU_TAR).split("\n", -1)).startsWith(expected.toArray(String[]::new));
    assertThat(read(members, PYTHON).split("\n", -1)).startsWith(expected.toArray(String[]::new));
    long headers = members.stream().mapToLong(TarMember::headerBytes).sum();
    assertThat(tar(members))
        .hasSize((int) (headers + (long) names.size() * TarMember.BLOCK + TarMember.END_BYTES));
  }

  @Test
  void name_ofAnyLength_isReadByTarAndPython() throws Exception {
    for (String kind : List.of("abcdefg", "\u00c3\u00bc", "\u00ff\u00fe", "ab\u00c3")) {
      List<FileName> names = new ArrayList<>();
      for (int size : new int[] {1, 2, 98, 99, 100, 101, 155, 256, 511, 512, 513, 1000, 4000}) {
        FileName name = name(kind, size);
        names.add(
            name.toLatin1().endsWith("/")
                ? FileName.ofLatin1(name.toLatin1().substring(1) + "x")
                : name);
      }
      assertNames(names);
    }
  }

  @Test
  void name_ofRandomBytes_isReadByTarAndPython() throws Exception {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    List<FileName> names = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      byte[] bytes = new byte[1 + random.nextInt(150)];
      random.nextBytes(bytes);
      for (int j = 0; j < bytes.length; j++) {
        // A newline would end the line that is compared.
        bytes[j] = bytes[j] == 0 || bytes[j] == '\n' || bytes[j] == '/' ? (byte) 'x' : bytes[j];
      }
      names.add(FileName.of(bytes));
    }
    assertNames(names);
  }

  @Test
  void name_withCut_neverLooksLikeADirectory() throws Exception {
    for (int slash = 90; slash < 105; slash++) {
      String path = "a".repeat(slash) + "/" + "b".repeat(60);
      assertThat(read(List.of(file(FileName.of(path))), "tar", "-tvf"))
          .startsWith("-")
          .endsWith(path + "\n");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20.000000001Z",
        "2023-11-14T22:13:20.5Z",
        "1960-01-01T00:00:00Z",
        "2300-01-01T00:00:00.123456789Z"
      })
  void time_ofAnyAge_isExact(String text) throws Exception {
    Instant time = Instant.parse(text);
    String listed =
        read(List.of(file(FileName.of("f"), attributes(0, time))), "tar", "--full-time", "-tvf");
    assertThat(listed).contains(text.replace("T", " ").replace("Z", ""));
  }

  @Test
  void time_beforeTheEpochWithAFraction_isExtracted() throws Exception {
    // GNU tar lists such times wrong, those it wrote itself too.
    Instant time = Instant.parse("1969-12-31T23:59:59.25Z");
    String target = temporary.toString();
    read(
        List.of(file(FileName.of("f"), attributes(0, time))),
        "tar",
        "--warning=no-timestamp",
        "-C",
        target,
        "-xf");
    assertThat(Files.getLastModifiedTime(temporary.resolve("f")).toInstant()).isEqualTo(time);
  }

  @Test
  void owner_aboveTheField_isExact() throws Exception {
    int uid = (int) 4_000_000_000L;
    assertThat(
            read(
                List.of(file(FileName.of("f"), attributes(uid, WHOLE_SECOND))),
                "tar",
                "--numeric-owner",
                "-tvf"))
        .contains(" 4000000000/7 ");
  }

  @Test
  void header_ofAPlainFile_isOneBlock() {
    assertThat(file(FileName.of("a")).headerBytes()).isEqualTo(TarMember.BLOCK);
    assertThat(file(FileName.of("a"), attributes(5, WHOLE_SECOND.plusNanos(1))).headerBytes())
        .isEqualTo(3 * TarMember.BLOCK);
  }

  @Test
  void link_toALongTarget_isRead() throws Exception {
    for (String kind : List.of("abc", "\u00c3\u00bc", "\u00ff")) {
      FileName target = name(kind, 300);
      TarMember link =
          new TarMember(
              FileName.of("l"), TarConstants.LF_SYMLINK, target, attributes(5, WHOLE_SECOND), 0);
      assertThat(read(List.of(link), "tar", "--quoting-style=literal", "-tvf"))
          .endsWith("l -> " + target.toLatin1() + "\n");
    }
  }

  @Test
  void size_aboveEightGibibytes_isInARecord() throws Exception {
    long size = 8L << 30;
    TarMember large =
        new TarMember(
            FileName.of("f"), TarConstants.LF_NORMAL, NONE, attributes(5, WHOLE_SECOND), size);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    large.put(TarMember.stream(bytes));
    assertThat(bytes.toString(ISO_8859_1)).contains(" size=" + size + "\n");
    assertThat(bytes.size()).isEqualTo(large.headerBytes());
  }
}
