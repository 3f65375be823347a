package io.pmfs.daemon.requests;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.pmfs.metadata.FileName;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

final class LogLineTest {
  private static final String READ =
      "2026-11-22T02:26:04.123456Z [uid:1000,gid:100,pid:4403] read"
          + " (\"/train/n01/img 1.jpg\",131072,262144): OK (131072) <0.000512>";

  private static @Nullable FileName pathOf(String line) {
    LogLine parsed = LogLine.parse(line);
    return parsed instanceof LogLine.Request request ? request.call().path() : null;
  }

  @Test
  void text_ofARead_isAsTheFormatSays() {
    LogLine.Request read =
        new LogLine.Request(
            Instant.parse("2026-11-22T02:26:04.123456789Z"),
            new Call(
                1000,
                100,
                4403,
                "read",
                FileName.of("train/n01/img 1.jpg"),
                -1,
                null,
                131072,
                262144),
            "OK",
            131072,
            512);

    assertThat(read.text()).isEqualTo(READ);
    assertThat(LogLine.parse(READ)).isEqualTo(read);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        READ,
        "2026-11-22T02:26:04.000000Z [uid:0,gid:0,pid:0] getattr (\"/\"): OK <12.000000>",
        "2026-11-22T02:26:04.100000Z [uid:-,gid:-,pid:-] lookup (#7,\"x\"): ENOENT <0.000001>",
        "2026-11-22T02:26:04.100000Z [uid:0,gid:0,pid:1] lookup (\"/a/b\"): ENOENT <0.000001>",
        "2026-11-22T02:26:04.100000Z [uid:0,gid:0,pid:1] getxattr (\"/a\",\"user.x\",0,-): ENODATA <0.000001>",
        "2026-11-22T02:26:04.100000Z [uid:0,gid:0,pid:1] lseek (\"/a\",-,4096): OK <0.000001>",
        "2026-11-22T02:26:04.100000Z [uid:4294967295,gid:0,pid:1] readdirplus (\"/\",4096,9223372036854775807): OK (0) <0.000001>",
        "2026-11-22T02:26:04.100000Z ... 1234 requests are missing here: the file could not be written",
        "2026-11-22T02:26:04.100000Z ... 1 request is missing here: the reader was too slow"
      })
  void parse_lines_giveTheSameTextAgain(String line) {
    LogLine parsed = Objects.requireNonNull(LogLine.parse(line), line);

    assertThat(parsed.text()).isEqualTo(line);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "pmfs",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/a\",1,0): OK (1) <0.000512",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/a\",1,0): OK (1) <0.512>",
        "2026-13-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/a\",1,0): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"a\",1,0): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/a\",1): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/%zz\",1,0): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/\ud800\",1,0): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z [uid:0,gid:0,pid:1] read (\"/a\",9999999999999999999,0): OK (1) <0.000512>",
        "2026-11-22T02:26:04.123456Z ... many requests are missing here: why"
      })
  void parse_whatIsNoLine_isNull(String text) {
    assertThat(LogLine.parse(text)).isNull();
  }

  static List<Arguments> hostileNames() {
    return List.of(
        arguments("a b", "/a b"),
        arguments("say \"no\"", "/say %22no%22"),
        arguments("50%", "/50%25"),
        arguments("back\\slash", "/back\\slash"),
        arguments("new\nline", "/new%0Aline"),
        arguments("bell" + (char) 7, "/bell%07"),
        arguments("next" + (char) 0x85 + "line", "/next%C2%85line"),
        arguments("separator" + (char) 0x2028, "/separator%E2%80%A8"),
        arguments("reversed" + (char) 0x202e, "/reversed%E2%80%AE"),
        arguments("tag" + Character.toString(0xe0041), "/tag%F3%A0%81%81"),
        arguments("日本 😀", "/日本 😀"));
  }

  @ParameterizedTest
  @MethodSource("hostileNames")
  void text_ofHostileNames_isOneReadableLine(String name, String expected) {
    FileName path = FileName.of(name);

    String line = Lines.of("lookup", path, "OK").text();

    assertThat(line).contains("(\"" + expected + "\")");
    assertThat(pathOf(line)).isEqualTo(path);
  }

  @Test
  void roundTrip_ofRandomBytes_keepsThem() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    for (int i = 0; i < 3000; i++) {
      byte[] path = new byte[random.nextInt(20)];
      byte[] name = new byte[1 + random.nextInt(5)];
      random.nextBytes(path);
      random.nextBytes(name);
      LogLine.Request line =
          new LogLine.Request(
              Lines.TIME,
              new Call(
                  random.nextInt(1 << 20),
                  -1,
                  random.nextInt(1 << 20),
                  "getxattr",
                  FileName.of(path),
                  -1,
                  FileName.of(name),
                  random.nextInt(1 << 20),
                  -1),
              random.nextBoolean() ? "OK" : "EIO",
              random.nextBoolean() ? -1 : random.nextInt(1 << 20),
              random.nextInt(1 << 30));

      String text = line.text();

      assertThat(text.codePoints().filter(c -> c < ' ' || c == 0x7f).count())
          .as("seed %d: %s", seed, text)
          .isZero();
      assertThat(LogLine.parse(text)).as("seed %d: %s", seed, text).isEqualTo(line);
    }
  }

  /** A line with changed bytes is another line or malformed; parsing throws nothing. */
  @Test
  void parse_damagedLines_isALineOrNull() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    for (int i = 0; i < 5000; i++) {
      StringBuilder text = new StringBuilder(READ);
      for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
        text.setCharAt(random.nextInt(text.length()), (char) random.nextInt(0x180));
      }
      LogLine parsed = LogLine.parse(text.toString());
      if (parsed != null) {
        assertThat(LogLine.parse(parsed.text())).as("seed %d: %s", seed, text).isEqualTo(parsed);
      }
    }
  }
}
