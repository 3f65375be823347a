package io.pmfs.posix;

import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A mount point of the form {@code /dev/fd/N}: no directory, but an open /dev/fuse of this process
 * that another program has mounted. libfuse 3 takes such mount points, too.
 */
public final class DescriptorPath {
  private static final Pattern FORM = Pattern.compile("/dev/fd/(0|[1-9]\\d{0,8})");

  private DescriptorPath() {}

  /** The number of the descriptor; null if the path has another form. */
  public static @Nullable Integer number(Path mountpoint) {
    Matcher matcher = FORM.matcher(mountpoint.toString());
    return matcher.matches() ? Integer.valueOf(matcher.group(1)) : null;
  }

  public static boolean isOne(Path mountpoint) {
    return number(mountpoint) != null;
  }
}
