package io.pmfs.places;

import io.pmfs.stage.formats.Compression;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * One tier as configured.
 *
 * @param path the place of its copies: a directory, a device or a file, by its kind; absolute
 * @param capacity how much of its disk the tier may use
 * @param compression how its copies are stored; null to use {@code --compression}
 */
public record TierSpec(
    TierKind kind, Path path, Capacity capacity, @Nullable Compression compression) {
  public static final String FORM = "KIND:PATH[:CAPACITY[:COMPRESSION]]";

  /** A smaller capacity is a number without its unit. */
  private static final long LEAST_BYTES = 1 << 20;

  /** A text that ends with a capacity and a compression. */
  private static final Pattern COMPRESSED =
      Pattern.compile("(.*:[^:/]*):((?:none|zstd|auto)(?::[^:/]*)?)", Pattern.DOTALL);

  public TierSpec(TierKind kind, Path path, Capacity capacity) {
    this(kind, path, capacity, null);
  }

  /**
   * Parses {@code ssd:/local/pmfs:80%}; throws IllegalArgumentException with a message for the
   * user.
   */
  public static TierSpec parse(String text, Surroundings surroundings) {
    int colon = text.indexOf(':');
    if (colon < 0) {
      throw new IllegalArgumentException(
          "'%s' is not a tier; write it as %s, such as ssd:%s:80%%"
              .formatted(text, FORM, text.contains("/") ? text : "/local/pmfs"));
    }
    TierKind kind = parseKind(text, text.substring(0, colon), surroundings.tierKinds());
    String path = text.substring(colon + 1);
    Compression compression = null;
    Matcher compressed = COMPRESSED.matcher(path);
    if (compressed.matches()) {
      compression = parseCompression(text, compressed.group(2));
      path = compressed.group(1);
    }
    Capacity capacity = Capacity.WHOLE_DISK;
    int last = path.lastIndexOf(':');
    // A path may contain a colon: the text after the last colon belongs to it if it has a slash.
    if (last >= 0 && path.indexOf('/', last) < 0) {
      capacity = Capacity.parse(path.substring(last + 1));
      path = path.substring(0, last);
      if (capacity.on(Long.MAX_VALUE) <= 0) {
        throw new IllegalArgumentException("'" + text + "': a tier needs a capacity above zero");
      }
      if (capacity.on(Long.MAX_VALUE) < LEAST_BYTES) {
        throw new IllegalArgumentException(
            "'%s': %s is too small for a tier; give at least 1M, such as %s:%s:10G"
                .formatted(text, capacity, kind, path));
      }
    }
    if (path.isEmpty()) {
      throw new IllegalArgumentException("'" + text + "' has no path; write it as " + FORM);
    }
    return new TierSpec(kind, GivenPath.of(path, surroundings), capacity, compression);
  }

  private static TierKind parseKind(String text, String word, List<TierKind> kinds) {
    for (TierKind kind : kinds) {
      if (kind.word().equals(word)) {
        return kind;
      }
    }
    if (word.contains("/")) {
      throw new IllegalArgumentException(
          "'%s' has no kind; write it as %s, such as ssd:%s".formatted(text, FORM, text));
    }
    String known = kinds.stream().map(TierKind::word).collect(Collectors.joining(", "));
    throw new IllegalArgumentException(
        "'%s': there is no tier kind '%s'; the kinds are %s"
            .formatted(text, word, known.replaceFirst(", (?=[^,]*$)", " and ")));
  }

  private static Compression parseCompression(String text, String compression) {
    try {
      return Compression.parse(compression);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("'" + text + "': " + e.getMessage(), e);
    }
  }

  /** The tier's name in records and for users. */
  public String name() {
    return kind + ":" + path;
  }

  /** Its name in messages, before the error. */
  public String what() {
    return "tier " + kind;
  }

  /** The place at the path, as it exists now. */
  public TierPlace place() {
    return kind.places().apply(this);
  }

  /** A text that {@link #parse} converts to the same tier, whatever its path contains. */
  public String exactText() {
    String amount =
        capacity.isPercent()
            ? String.format(Locale.ROOT, "%.6f%%", capacity.percent())
            : Long.toString(capacity.bytes());
    String text = name() + ":" + amount;
    return compression == null ? text : text + ":" + compression;
  }

  public TierSpec at(Path place) {
    return new TierSpec(kind, place, capacity, compression);
  }

  @Override
  public String toString() {
    String tier = name();
    if (compression != null) {
      return tier + ":" + capacity + ":" + compression;
    }
    return tier + (capacity.equals(Capacity.WHOLE_DISK) ? "" : ":" + capacity);
  }
}
