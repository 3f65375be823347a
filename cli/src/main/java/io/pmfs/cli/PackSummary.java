package io.pmfs.cli;

import io.pmfs.machine.ByteSize;
import io.pmfs.pack.PackManifest;
import io.pmfs.pack.PackManifest.Counts;
import io.pmfs.pack.PackSettings;
import java.time.Duration;
import java.util.Locale;

/** The last line of a pack: counts, bytes, rate and ratio. */
final class PackSummary {
  private PackSummary() {}

  static String of(
      PackManifest manifest, PackSettings settings, int kept, Duration elapsed, boolean planned) {
    Counts counts = manifest.counts();
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "%s: %,d files in %,d directories%s%s%s, %s in %,d shards",
            settings.directory(),
            counts.files(),
            counts.directories(),
            more(counts.symbolicLinks(), "symbolic links"),
            more(counts.hardLinks(), "hard links"),
            more(counts.others(), "device files and FIFOs"),
            ByteSize.format(manifest.bytes()),
            manifest.shards().size()));
    if (planned) {
      return text.append(" of ")
          .append(ByteSize.format(manifest.tarSize()))
          .append(" to be written")
          .toString();
    }
    text.append(" of ").append(ByteSize.format(manifest.size()));
    if (kept > 0) {
      text.append(String.format(Locale.ROOT, " (%,d already there)", kept));
    }
    if (settings.compression().level() > 0) {
      double ratio = (double) manifest.tarSize() / Math.max(1, manifest.size());
      text.append(String.format(Locale.ROOT, ", %.2f times smaller", ratio));
    }
    double seconds = Math.max(0.001, elapsed.toMillis() / 1000.0);
    text.append(
        String.format(
            Locale.ROOT,
            ", %.1f s, %s/s",
            seconds,
            ByteSize.format((long) (manifest.bytes() / seconds))));
    return text.toString();
  }

  private static String more(long count, String what) {
    return count == 0 ? "" : String.format(Locale.ROOT, ", %,d %s", count, what);
  }
}
