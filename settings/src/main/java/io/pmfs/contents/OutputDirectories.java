package io.pmfs.contents;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.DatasetDirectory;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.tier.DirectoryTier;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directories in which a writable mount keeps files that are not at the source yet: one for its
 * state, and one on each tier. While open, they are locked against other mounts. Each is marked
 * while it may hold such files, and a marked directory is never removed. Used by one thread at a
 * time.
 */
public final class OutputDirectories implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(OutputDirectories.class);

  /** RocksDB locks this file of a state itself. */
  private static final String STATE_LOCK = "LOCK";

  private static final String SETTINGS = "settings";

  private final DatasetDirectory state;
  private final List<Place> places = new ArrayList<>();
  private final List<DatasetDirectory> directories = new ArrayList<>();
  private final List<TierSpec> tiers = new ArrayList<>();
  private final List<FileChannel> held = new ArrayList<>();

  /**
   * The directory on one tier.
   *
   * @param name the name of the tier
   * @param capacityBytes how much of the disk files may use; 0 for a tier that accepts no new files
   * @param keepFreeBytes how much of the disk must stay free
   */
  public record Place(String name, Path directory, long capacityBytes, long keepFreeBytes) {}

  private OutputDirectories(DatasetDirectory state) {
    this.state = state;
  }

  /**
   * Creates the directories and locks them.
   *
   * @param name of each directory
   * @param isResumed whether the mount is in use: then it continues without a missing tier
   * @throws MountFailure with {@link ExitStatus#IN_USE} if another mount uses them
   */
  public static OutputDirectories open(
      MountSettings settings, String name, Surroundings surroundings, boolean isResumed)
      throws MountFailure {
    Path place = settings.metadata().stateDirectory();
    if (place == null) {
      throw MountFailure.usage("there is no place for the state; give one with --state-dir");
    }
    OutputDirectories opened =
        new OutputDirectories(new DatasetDirectory(place.resolve(name), STATE_LOCK));
    boolean complete = false;
    try {
      opened.makeState(settings.source().path());
      Map<TierSpec, Boolean> tiers = opened.tiers(settings, surroundings);
      for (Map.Entry<TierSpec, Boolean> tier : tiers.entrySet()) {
        opened.add(tier.getKey(), tier.getValue(), settings, name, isResumed);
      }
      complete = true;
      return opened;
    } finally {
      if (!complete) {
        opened.close();
      }
    }
  }

  private void makeState(Path source) throws MountFailure {
    try {
      state.make();
      state.label(source.toString());
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          state.path() + ": state: " + Reason.of(e) + "; choose another --state-dir",
          e);
    }
  }

  /**
   * The tiers of these settings, and tiers of an earlier mount that may still hold files; the value
   * is true for tiers that accept new files.
   */
  private Map<TierSpec, Boolean> tiers(MountSettings settings, Surroundings surroundings) {
    Map<TierSpec, Boolean> tiers = new LinkedHashMap<>();
    settings.copies().tiers().forEach(tier -> tiers.put(tier, true));
    List<Path> paths = tiers.keySet().stream().map(TierSpec::path).toList();
    for (TierSpec earlier : earlierTiers(surroundings)) {
      if (!paths.contains(earlier.path()) && Files.isDirectory(earlier.path())) {
        tiers.put(earlier, false);
      }
    }
    return tiers;
  }

  private List<TierSpec> earlierTiers(Surroundings surroundings) {
    SessionSettings earlier = state.isUnsaved() ? earlier() : null;
    if (earlier == null) {
      return List.of();
    }
    return earlier.pinned().getOrDefault(MountOption.TIER, List.of()).stream()
        .map(text -> TierSpec.parse(text, surroundings))
        .toList();
  }

  private void add(
      TierSpec tier, boolean takesFiles, MountSettings settings, String name, boolean isResumed)
      throws MountFailure {
    DatasetDirectory directory =
        new DatasetDirectory(tier.path().resolve(name), DirectoryTier.LOCK);
    try {
      FileChannel lock = directory.hold();
      if (lock == null) {
        throw new MountFailure(
            ExitStatus.IN_USE,
            directory.path() + ": another mount uses it; unmount that, or choose another --tier");
      }
      held.add(lock);
      directory.label(settings.source().path().toString());
      FileStore disk = Files.getFileStore(tier.path());
      long diskBytes = disk.getTotalSpace();
      places.add(
          new Place(
              tier.name(),
              directory.path(),
              takesFiles ? tier.capacity().on(diskBytes) : 0,
              settings.copies().keepFree().on(diskBytes)));
      directories.add(directory);
      tiers.add(tier);
    } catch (IOException e) {
      String problem = "%s: %s: %s".formatted(tier.path(), tier.what(), Reason.of(e));
      if (!isResumed) {
        throw new MountFailure(ExitStatus.USAGE, problem + "; choose another --tier", e);
      }
      log.warn("{}; its files cannot be read for now", problem);
    }
  }

  public Path state() {
    return state.path();
  }

  /** The directories on the tiers, fastest first. */
  public List<Place> places() {
    return List.copyOf(places);
  }

  /** The tiers of these directories, also those of earlier mounts. */
  public List<TierSpec> tiers() {
    return List.copyOf(tiers);
  }

  /** Whether an earlier mount may have left files that are not at the source. */
  public boolean isUnsaved() {
    return state.isUnsaved();
  }

  /** The settings of the last mount that used these directories; null if unknown. */
  public @Nullable SessionSettings earlier() {
    return earlier(state.path());
  }

  /** The settings of the last mount that used this state; null if unknown. */
  public static @Nullable SessionSettings earlier(Path state) {
    try {
      Path file = OwnPath.ofProcess().file(state.resolve(SETTINGS));
      return Files.exists(file) ? SessionSettings.load(file) : null;
    } catch (IOException e) {
      return null;
    }
  }

  /**
   * Marks the directories, and saves the settings for the command or mount that will drain them.
   */
  public void begin(SessionSettings session) throws IOException {
    state.markUnsaved();
    for (DatasetDirectory directory : directories) {
      directory.markUnsaved();
    }
    // Also the tiers of earlier mounts, while they may hold files.
    Map<MountOption<?>, List<String>> pinned = new TreeMap<>(session.pinned());
    pinned.put(MountOption.TIER, tiers.stream().map(TierSpec::exactText).toList());
    new SessionSettings(
            session.id(),
            session.configuration(),
            pinned,
            session.secret(),
            session.foreground(),
            session.source())
        .save(state.path().resolve(SETTINGS));
  }

  /** Removes the marks: all files are at the source. */
  public void clear() throws IOException {
    for (DatasetDirectory directory : directories) {
      directory.clearUnsaved();
    }
    state.clearUnsaved();
  }

  @Override
  public void close() {
    for (FileChannel lock : held) {
      try {
        lock.close();
      } catch (IOException e) {
        // The lock ends with this process.
      }
    }
    held.clear();
  }
}
