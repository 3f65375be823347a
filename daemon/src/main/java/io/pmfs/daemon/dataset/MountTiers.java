package io.pmfs.daemon.dataset;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.hash.Hashing;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.system.Priority;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.TierPlace;
import io.pmfs.places.TierSpec;
import io.pmfs.posix.DaemonThread;
import io.pmfs.settings.MountSettings;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.DaxVerdict;
import io.pmfs.tier.MissingTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierInUseException;
import io.pmfs.tier.TierStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The tiers of one mount: opens them at their places, and decides how each stores its copies. */
final class MountTiers {
  private static final Logger log = LoggerFactory.getLogger(MountTiers.class);

  private final MountSettings settings;
  private final SourceAndState source;
  private final boolean isResumed;
  private final Consumer<String> notice;
  private final List<OpenTier> tiers = new ArrayList<>();
  private boolean isDirect;
  private @Nullable Copies copies;

  private record OpenTier(TierSpec spec, TierPlace place, Tier tier) {}

  /**
   * Opens no tiers yet; see {@link #open}.
   *
   * @param isResumed whether the mount is already in use, and continues without a tier that cannot
   *     be opened
   * @param notice takes lines for the user who waits for the mount
   */
  MountTiers(
      MountSettings settings, SourceAndState source, boolean isResumed, Consumer<String> notice) {
    this.settings = settings;
    this.source = source;
    this.isResumed = isResumed;
    this.notice = notice;
  }

  /** Opens all tiers of the settings, which belong to {@code opened}. */
  void open(Opened opened) throws MountFailure {
    for (TierSpec spec : settings.copies().tiers()) {
      TierPlace place = spec.place();
      Tier tier = opened.add(open(spec, place));
      checkDax(spec, tier);
      tiers.add(new OpenTier(spec, place, tier));
    }
  }

  private Tier open(TierSpec spec, TierPlace place) throws MountFailure {
    try {
      return openAt(spec, place);
    } catch (MountFailure e) {
      if (!isResumed) {
        throw e;
      }
      log.warn("{}; continuing without it", e.line());
      return new MissingTier(spec.name(), spec.kind().word(), spec.path().toString(), e.line());
    }
  }

  private Tier openAt(TierSpec spec, TierPlace place) throws MountFailure {
    try {
      return place.open(
          new TierPlace.Opening(
              source.dataset(),
              settings.source().path(),
              settings.copies().keepFree(),
              settings.metadata().stateDirectory(),
              TierUsage.kept(source.namespace(), spec.name())));
    } catch (TierInUseException e) {
      throw new MountFailure(
          ExitStatus.IN_USE,
          spec.path() + ": " + spec.what() + ": " + Reason.of(e) + "; choose another --tier",
          e);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: %s: %s choose another --tier"
              .formatted(
                  spec.path(),
                  spec.what(),
                  Reason.isNoRoom(e) ? "no room on its disk; free some, or" : Reason.of(e) + ";"),
          e);
    }
  }

  /** A pm tier that is not persistent memory is an error with --require-dax, else a notice. */
  private void checkDax(TierSpec spec, Tier tier) throws MountFailure {
    DaxVerdict dax = tier.status().dax();
    if (dax == null || dax.real()) {
      return;
    }
    String line = "%s: %s: %s".formatted(spec.path(), spec.what(), dax.reason());
    if (settings.copies().requireDax() && !isResumed) {
      throw new MountFailure(
          ExitStatus.USAGE,
          line + "; choose a directory on persistent memory, or leave out --require-dax");
    }
    log.info("{}", line);
    if (!isResumed) {
      notice.accept(line + "; its copies are kept as on a disk");
    }
  }

  /**
   * Whether the kernel reads copies of the first tier in place, without its page cache, from the
   * start of the mount.
   *
   * @param isPermitted whether the kernel lets this process pass files through
   */
  boolean areReadDirectly(boolean isPermitted) {
    if (tiers.isEmpty()) {
      return false;
    }
    OpenTier first = tiers.get(0);
    return first.tier().isDirect()
        && settings.bridge().readMode().equals(ReadMode.AUTO.word())
        && compression(first).mode() == Compression.Mode.NONE
        && isPermitted;
  }

  /**
   * Opens the copies in these tiers, which belong to {@code opened}.
   *
   * @param isDirect as {@link #areReadDirectly}
   */
  Copies openCopies(boolean isDirect, Opened opened) {
    this.isDirect = isDirect;
    List<CopyFormat> formats = new ArrayList<>();
    for (OpenTier one : tiers) {
      formats.add(opened.add(format(one)));
    }
    List<Tier> all = tiers.stream().map(OpenTier::tier).toList();
    Copies made = opened.add(new Copies(source.namespace(), all, formats, source.memory()));
    copies = made;
    return made;
  }

  private CopyFormat format(OpenTier one) {
    TierStatus status = one.tier().status();
    boolean isEmpty = status.state() == TierStatus.State.ON && status.copies() == 0;
    Path directory = one.place().directory();
    return new CopyFormat(
        compression(one),
        bundling(directory != null),
        directory == null
            ? dictionaryBesideState(one.tier().name())
            : directory.resolve(source.dataset()),
        MountTiers::runInBackground,
        isEmpty ? Long.valueOf(0) : TierUsage.keptContent(source.namespace(), one.tier().name()));
  }

  private Compression compression(OpenTier one) {
    Compression own = one.spec().compression();
    return own == null ? settings.copies().compression() : own;
  }

  /** Eviction needs a file for each copy: it cannot remove single copies from a bundle. */
  private Bundling bundling(boolean areFiles) {
    if (!settings.copies().eviction().equals("none")) {
      return Bundling.NONE;
    }
    return areFiles
            && (isDirect || settings.bridge().readMode().equals(ReadMode.PASSTHROUGH.word()))
        ? Bundling.COMPRESSED
        : Bundling.ALL;
  }

  /** The directory for the dictionary of a place without a directory, for example a pool. */
  private Path dictionaryBesideState(String tier) {
    String hash = Hashing.sha256().hashString(tier, UTF_8).toString();
    Path directory = source.state().resolve("pool-" + hash.substring(0, 16));
    try {
      return Files.createDirectories(directory);
    } catch (IOException e) {
      // Copies are then compressed without a dictionary.
      log.warn("{}: state: {}", directory, Reason.of(e));
      return directory;
    }
  }

  private static void runInBackground(Runnable task) {
    DaemonThread.start(
        "dictionary",
        () -> {
          Priority.lower();
          task.run();
        });
  }

  Copies copies() {
    return Objects.requireNonNull(copies);
  }

  boolean isDirect() {
    return isDirect;
  }

  String first() {
    return tiers.get(0).tier().name();
  }
}
