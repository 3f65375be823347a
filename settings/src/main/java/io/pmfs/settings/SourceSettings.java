package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The source of a mount, and how pmfs reads it.
 *
 * @param path the dataset's directory or tar file, absolute and without symbolic links
 * @param form {@code auto}, {@code directory} or {@code tar}
 * @param nested whether tar files inside tar files are shown as directories
 * @param metadataThreads the threads that look up names in the source, 1 to 256
 * @param cache the socket of the node cache through which content is read; null if there is none
 */
public record SourceSettings(
    Path path, String form, boolean nested, int metadataThreads, @Nullable Path cache) {
  static SourceSettings of(OptionValues values) throws MountFailure {
    return new SourceSettings(
        values.sourcePlace(),
        values.get(MountOption.SOURCE_FORM),
        values.get(MountOption.NESTED),
        values.get(MountOption.METADATA_THREADS),
        values.findPlace(MountOption.NODE_CACHE));
  }
}
