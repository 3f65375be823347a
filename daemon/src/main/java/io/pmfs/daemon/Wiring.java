package io.pmfs.daemon;

import io.pmfs.daemon.dataset.DatasetWiring;
import io.pmfs.daemon.dataset.MountOpener;
import io.pmfs.daemon.dataset.MountedDataset;
import io.pmfs.daemon.dataset.Opened;
import io.pmfs.daemon.outputs.OutputWiring;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.system.LibC;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.RocksNamespace;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.FsException;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.OutputSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.shards.ShardException;
import io.pmfs.table.StateException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens a mount of either kind, or the changes that an ended writable one left. */
public final class Wiring implements MountOpener {
  private static final Logger log = LoggerFactory.getLogger(Wiring.class);

  private final Surroundings surroundings;
  private final @Nullable Supervision supervision;
  private final long kernelFlags;
  private final Consumer<String> notice;

  /**
   * For mounts of this process.
   *
   * @param kernelFlags the features of the kernel that may be used; see {@link KernelBridge}
   * @param notice takes lines for the user who waits for a mount
   */
  public Wiring(
      Surroundings surroundings,
      @Nullable Supervision supervision,
      long kernelFlags,
      Consumer<String> notice) {
    this.surroundings = surroundings;
    this.supervision = supervision;
    this.kernelFlags = kernelFlags;
    this.notice = notice;
  }

  /**
   * Loads native libraries in a separate thread, while this process reads its options, if the
   * launcher started it as a daemon.
   */
  public static void loadLibraries() {
    if (Long.getLong(DatasetWiring.DIRECT_MEMORY) == null) {
      return;
    }
    Thread loader =
        new Thread(
            () -> {
              try {
                log.trace("effective user {}", LibC.INSTANCE.geteuid());
                RocksNamespace.loadLibrary();
              } catch (RuntimeException | Error e) {
                log.debug("a library was not loaded ahead", e); // the mount fails with the reason
              }
            },
            "load");
    loader.setDaemon(true);
    try {
      loader.start();
    } catch (OutOfMemoryError e) {
      log.debug("no library is loaded ahead: {}", e.toString());
    }
  }

  @Override
  public MountedDataset open(MountSettings settings, SessionSettings session) throws MountFailure {
    OutputSettings outputs = settings.outputs();
    return opening(
        settings,
        opened ->
            outputs == null
                ? new DatasetWiring(
                        surroundings, supervision, kernelFlags, notice, settings, session, opened)
                    .open()
                : outputWiring().open(settings, outputs, session, opened));
  }

  /** Opens the changes that an ended writable mount left. */
  OutputWiring.LeftParts openLeft(
      MountSettings settings, OutputSettings outputs, SessionSettings session) throws MountFailure {
    return opening(settings, opened -> outputWiring().openLeft(settings, outputs, session, opened));
  }

  private OutputWiring outputWiring() {
    return new OutputWiring(surroundings, supervision, kernelFlags);
  }

  /** Assembles an object from parts, which {@code opened} closes. */
  private interface Assembly<T> {
    T of(Opened opened) throws MountFailure, FsException, ShardException, MountException;
  }

  /** Closes all parts if one of them cannot be opened. */
  private static <T> T opening(MountSettings settings, Assembly<T> assembly) throws MountFailure {
    Opened opened = new Opened();
    boolean complete = false;
    try {
      T made = assembly.of(opened);
      complete = true;
      return made;
    } catch (FsException e) {
      throw new MountFailure(
          ExitStatus.USAGE, settings.source().path() + ": source: " + Reason.of(e), e);
    } catch (ShardException e) {
      throw new MountFailure(
          ExitStatus.FAILED, settings.source().path() + ": source: " + e.getMessage(), e);
    } catch (StateException e) {
      throw new MountFailure(
          e.isInUse() ? ExitStatus.IN_USE : ExitStatus.FAILED, String.valueOf(e.getMessage()), e);
    } catch (MountException e) {
      throw DatasetWiring.failure(e);
    } finally {
      if (!complete) {
        opened.close();
      }
    }
  }
}
