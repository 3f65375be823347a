package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Lines of /proc/self/mountinfo (proc(5)), unchanged; compares paths in their escaped form. */
final class MountLines {
  private static final Pattern PMFS = Pattern.compile(" - fuse\\.pmfs ");

  private final List<String> lines;

  /** Takes the file's text, in which each char is a byte. */
  MountLines(String text) {
    this.lines = Arrays.stream(text.split("\n", -1)).filter(line -> !line.isEmpty()).toList();
  }

  /** The lines of pmfs mounts and of mounts that hold the paths, in their order. */
  String concerning(Collection<String> paths) {
    List<String> holding = new ArrayList<>();
    for (String path : paths) {
      String line = holding(escape(path));
      if (line != null) {
        holding.add(line);
      }
    }
    StringBuilder text = new StringBuilder();
    for (String line : lines) {
      if (PMFS.matcher(line).find() || holding.contains(line)) {
        text.append(line).append('\n');
      }
    }
    return text.append("of ").append(lines.size()).append(" lines\n").toString();
  }

  private @Nullable String holding(String path) {
    String found = null;
    for (String line : lines) {
      String place = place(line);
      boolean holds = place.equals("/") || path.equals(place) || path.startsWith(place + "/");
      if (holds && (found == null || place.length() >= place(found).length())) {
        found = line;
      }
    }
    return found;
  }

  /** The number of the FUSE connection of a mount of pmfs: the minor one of its device, or -1. */
  int connection(String mountpoint) {
    String place = escape(mountpoint);
    int number = -1;
    for (String line : lines) {
      String[] device = field(line, 2).split(":", -1);
      if (PMFS.matcher(line).find()
          && place(line).equals(place)
          && device.length == 2
          && device[1].matches("\\d{1,9}")) {
        number = Integer.parseInt(device[1]);
      }
    }
    return number;
  }

  private static String place(String line) {
    return field(line, 4);
  }

  private static String field(String line, int index) {
    String[] fields = line.split(" ", index + 2);
    return fields.length > index ? fields[index] : "";
  }

  private static String escape(String path) {
    return new String(path.getBytes(UTF_8), ISO_8859_1)
        .replace("\\", "\\134")
        .replace(" ", "\\040")
        .replace("\t", "\\011")
        .replace("\n", "\\012");
  }
}
