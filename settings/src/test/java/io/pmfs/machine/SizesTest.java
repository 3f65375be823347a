package io.pmfs.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.places.Capacity;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierKind;
import io.pmfs.places.TierSpec;
import io.pmfs.stage.formats.Compression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class SizesTest {
  @ParameterizedTest
  @CsvSource({
    "0,0",
    "17,17",
    "17B,17",
    "1K,1024",
    "1KiB,1024",
    "1kib,1024",
    "1KB,1000",
    "200G,214748364800",
    "64MiB,67108864",
    "64 MB,64000000",
    "1.5K,1536",
    "2T,2199023255552",
    "3PB,3000000000000000",
    "9223372036854775807,9223372036854775807"
  })
  void byteSize_wellFormed_parses(String text, long bytes) {
    assertThat(ByteSize.parse(text)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", "x", "-1", "1X", "1KK", "K", "1e3", "1.K", "1 2", "9223372036854775808"})
  void byteSize_malformed_isRefusedWithTheText(String text) {
    assertThatThrownBy(() -> ByteSize.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + text + "'");
  }

  @ParameterizedTest
  @CsvSource({
    "0,0 B",
    "1023,1023 B",
    "1024,1.0 KiB",
    "1536,1.5 KiB",
    "102400,100 KiB",
    "1048575,1.0 MiB",
    "9223372036854775807,8.0 EiB"
  })
  void byteSize_formatted_hasThreeDigits(long bytes, String text) {
    assertThat(ByteSize.format(bytes)).isEqualTo(text);
  }

  @ParameterizedTest
  @CsvSource({"500ms,500", "30s,30000", "2m,120000", "1h,3600000", "1 d,86400000", "0s,0"})
  void timeSpan_wellFormed_parses(String text, long milliseconds) {
    assertThat(TimeSpan.parse(text)).isEqualTo(Duration.ofMillis(milliseconds));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "5", "s", "-1s", "1.5s", "10000000000s", "1w"})
  void timeSpan_malformed_isRefused(String text) {
    assertThatThrownBy(() -> TimeSpan.parse(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @CsvSource({"59,59s", "61,1m 1s", "3725,1h 2m", "90061,1d 1h"})
  void timeSpan_formatted_hasTwoUnits(long seconds, String text) {
    assertThat(TimeSpan.format(Duration.ofSeconds(seconds))).isEqualTo(text);
  }

  @ParameterizedTest
  @CsvSource({"10%,1000,100", "0%,1000,0", "100%,1000,1000", "0.5%,1000,5", "2K,1000,2048"})
  void capacity_onADisk_isBytes(String text, long disk, long bytes) {
    assertThat(Capacity.parse(text).on(disk)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(strings = {"101%", "-1%", "%", "x%", "100.1%", "many"})
  void capacity_malformed_isRefused(String text) {
    assertThatThrownBy(() -> Capacity.parse(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void tier_withAndWithoutCapacity_parses() {
    assertThat(tier("pm:/a/b:200G"))
        .isEqualTo(new TierSpec(TierKind.PM, Path.of("/a/b"), Capacity.ofBytes(200L << 30)));
    assertThat(tier("ssd:/a/b"))
        .isEqualTo(new TierSpec(TierKind.SSD, Path.of("/a/b"), Capacity.WHOLE_DISK));
    assertThat(tier("ssd:rel/../b:80%"))
        .isEqualTo(new TierSpec(TierKind.SSD, Path.of("/here/b"), Capacity.ofPercent(80)));
    assertThat(tier("ssd:~/c").path()).isEqualTo(Path.of("/home/ada/c"));
  }

  @Test
  void tier_withColonsInItsPath_keepsThem() {
    assertThat(tier("ssd:/a:b/c").path()).isEqualTo(Path.of("/a:b/c"));
    assertThat(tier("ssd:/a:b:1G")).extracting(TierSpec::path).isEqualTo(Path.of("/a:b"));
  }

  @Test
  void tier_withCompression_hasIt() {
    assertThat(tier("ssd:/a:80%:zstd:7"))
        .isEqualTo(
            new TierSpec(
                TierKind.SSD, Path.of("/a"), Capacity.ofPercent(80), Compression.parse("zstd:7")));
    assertThat(tier("pm:/a:b/c:1G:none").compression()).isEqualTo(Compression.NONE);
    assertThat(tier("pm:/a:zstd:1G:auto").path()).isEqualTo(Path.of("/a:zstd"));
    assertThat(tier("ssd:/a:80%").compression()).isNull();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/a",
        "hdd:/a",
        "ssd:",
        "ssd::1G",
        "ssd:/a:x",
        "ssd:/a:0",
        "ssd:/a:0%",
        "ssd:/a:1023K",
        "ssd:$HOME/a",
        "ssd:/a/${USER}",
        "ssd:~grace/a",
        "",
        "ssd:/a:1G:zstd:20",
        "ssd:/a:1G:zstd:x",
        "ssd:/a:1G:none:1",
        "ssd:/a:1G:lz4",
        "ssd:/a:zstd"
      })
  void tier_malformed_isRefused(String text) {
    assertThatThrownBy(() -> tier(text)).isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "ssd:/local/pmfs",
        "pm:/p:80%",
        "ssd:/a:0.5%",
        "ssd:/a:1G:zstd:3",
        "pm:/a:b:5%:none"
      })
  void tier_printed_parsesAgain(String text) {
    assertThat(tier(tier(text).toString())).isEqualTo(tier(text));
  }

  private static TierSpec tier(String text) {
    return TierSpec.parse(
        text,
        new Surroundings(Map.of("HOME", "/home/ada"), Path.of("/here"), 7, "ada", Path.of("/")));
  }
}
