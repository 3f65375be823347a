package io.pmfs.daemon;

import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.Limited;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.Registry;
import io.pmfs.mounts.StandIn;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.FsException;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/**
 * Mounts the source itself, read-only, in place of a session of root whose daemons keep dying, but
 * only if this gives no user additional read access: docs/decisions/0059.
 */
final class SourceInPlace {
  /** A limit, so that a hanging source does not keep the supervisor from unmounting. */
  private static final Duration PATIENCE = Duration.ofSeconds(15);

  private final String device;
  private final SessionSettings session;
  private final int deaths;
  private final Surroundings surroundings;

  /**
   * @param device the session's device number
   * @param deaths how many daemons died within a minute
   */
  SourceInPlace(String device, SessionSettings session, int deaths, Surroundings surroundings) {
    this.device = device;
    this.session = session;
    this.deaths = deaths;
    this.surroundings = surroundings;
  }

  /**
   * Mounts the source at all mount points of the session; returns them as text.
   *
   * @throws MountFailure if the source is shown nowhere
   */
  String show() throws MountFailure {
    MountTable mounts = surroundings.mounts();
    List<Path> places = new ArrayList<>(mounts.placesOf(device));
    places.removeIf(Registry::isKept);
    if (places.isEmpty()) {
      throw refusal("it is not mounted any more");
    }
    for (Path place : places) {
      MountTable.Mount mount = mounts.at(place);
      if (mount != null) {
        requireEqualRights(mount);
      }
    }
    requireOneFileSystem(mounts);
    List<String> shown = new ArrayList<>();
    MountFailure last = null;
    try (DirectoryStore source = open()) {
      for (Path place : places) {
        try {
          show(source, place);
          shown.add(place.toString());
        } catch (MountFailure e) {
          last = e;
        }
      }
    }
    if (last == null || !shown.isEmpty()) {
      return String.join(", ", shown) + (last == null ? "" : ", but " + last.line());
    }
    throw last;
  }

  private void requireEqualRights(MountTable.Mount mount) throws MountFailure {
    if (!mount.hasOption("ro")) {
      throw refusal("it is writable, and changes that are not at the source would be missing");
    }
    if (mount.userId() != 0) {
      throw refusal("its daemon is a user's process");
    }
    if (!mount.hasOption("allow_other")) {
      throw refusal("without --allow-other it is closed to other users, and its source may not be");
    }
    SourceIdentity source = session.source();
    if (source == null || source.form() != SourceIdentity.Form.DIRECTORY) {
      throw refusal("it shows the content of tar files, which no directory has");
    }
  }

  /** A bind mount would show what file systems mounted below the source cover. */
  private void requireOneFileSystem(MountTable mounts) throws MountFailure {
    Path source = path();
    for (MountTable.Mount mount : mounts.all()) {
      if (mount.mountpoint().startsWith(source) && !mount.mountpoint().equals(source)) {
        throw refusal(mount.mountpoint() + " is mounted below its source");
      }
    }
  }

  /**
   * Opens the mounted directory; checks its identity, because its path may lead elsewhere by now.
   */
  private DirectoryStore open() throws MountFailure {
    Path path = path();
    DirectoryStore found;
    try {
      found = Limited.call(PATIENCE, () -> opened(path));
    } catch (IOException e) {
      throw refusal(path + " cannot be opened: " + e.getMessage());
    }
    SourceIdentity began = session.source();
    if (began == null || !found.identity().equals(began.root())) {
      found.close();
      throw refusal(path + " is not the directory that was mounted");
    }
    return found;
  }

  private static DirectoryStore opened(Path path) throws IOException {
    try {
      return new DirectoryStore(path);
    } catch (FsException e) {
      throw new IOException(e.errno().toString(), e);
    }
  }

  private Path path() throws MountFailure {
    return Path.of(pinned(MountOption.SOURCE));
  }

  private void show(DirectoryStore source, Path place) throws MountFailure {
    String number;
    try (MountPoint point = MountPoint.open(place)) {
      number = point.replace(device, source);
    } catch (MountException e) {
      throw refusal(String.valueOf(e.getMessage()));
    }
    if (number == null) {
      throw refusal(place + " is not mounted any more");
    }
    StandIn standIn =
        new StandIn(
            place.toString(),
            path().toString(),
            number,
            deaths,
            Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
            pinned(MountOption.LOG_FILE));
    try {
      Registry.open(surroundings).standIn(standIn);
    } catch (MountFailure e) {
      // An unrecorded mount would be a mystery to users.
      MountTable.Mount mount = surroundings.mounts().at(place);
      if (mount != null && standIn.is(mount)) {
        ExternalUnmount.run(mount, true, surroundings);
      }
      throw e;
    }
  }

  private String pinned(MountOption<?> option) throws MountFailure {
    List<String> texts = session.pinned().getOrDefault(option, List.of());
    if (texts.isEmpty()) {
      throw refusal("its settings do not name its " + option.key());
    }
    return texts.get(0);
  }

  private static MountFailure refusal(String why) {
    return new MountFailure(ExitStatus.FAILED, why);
  }
}
