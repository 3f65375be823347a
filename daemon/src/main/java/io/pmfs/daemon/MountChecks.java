package io.pmfs.daemon;

import io.pmfs.daemon.dataset.MountPlaces;
import io.pmfs.daemon.process.MachineChecks;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.mounting.MountRight;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.MountProbe;
import io.pmfs.places.OwnDirectory;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.MountSettings;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Checks before a mount starts. Each failure is one line with a remedy. */
public final class MountChecks {
  private static final int STICKY = 01000;

  /** Also matches tar files that cannot be served; opening them reports why. */
  private static final Pattern TAR_NAME =
      Pattern.compile(".*\\.(tar(\\.[a-z0-9]+)?|tgz|tbz2?|txz|tzst)", Pattern.CASE_INSENSITIVE);

  private final MountSettings settings;
  private final Surroundings surroundings;
  private final MountTable mounts;

  /**
   * A supervisor that mounts for this process and has checked the mount point; null if this process
   * mounts.
   */
  private final @Nullable Supervision mounting;

  public MountChecks(
      MountSettings settings,
      Surroundings surroundings,
      MountTable mounts,
      @Nullable Supervision supervision) {
    this.settings = settings;
    this.surroundings = surroundings;
    this.mounts = mounts;
    this.mounting = supervision != null && supervision.mountsForUser() ? supervision : null;
  }

  /** Throws at the first failed check. Creates missing tier directories with mode 0700. */
  public void run() throws MountFailure {
    checkUser();
    checkSource();
    boolean isGiven = settings.isMountedByAnother();
    if (isGiven) {
      checkDescriptor();
    } else if (mounting == null) {
      checkMountpoint();
    } else if (!Files.isDirectory(settings.mountpoint())) {
      throw MountFailure.usage(
          settings.mountpoint(),
          "mount point",
          "user " + surroundings.userName() + " cannot reach it",
          "name a directory that the user can reach");
    }
    checkNesting();
    new MountPlaces(settings, surroundings).check();
    checkAllowOther();
    checkLinger();
    for (TierSpec tier : settings.copies().tiers()) {
      tier.place().check(settings.copies().keepFree(), userToMakeFor());
    }
    checkState();
    checkAccessLog();
    if (mounting == null && !isGiven) {
      new MachineChecks(surroundings).requireFuse(settings.bridge().kind());
    }
  }

  private void checkUser() throws MountFailure {
    if (settings.bridge().user() != null && mounting == null) {
      throw MountFailure.usage(
          "--user: works only for root and through the launcher scripts/pmfs; give it on the"
              + " command line");
    }
    if (mounting != null && settings.bridge().kind().equals("jnr")) {
      throw MountFailure.usage(
          "--bridge jnr: --user works only with the kernel bridge; leave out one of the two");
    }
  }

  private void checkSource() throws MountFailure {
    Path source = settings.source().path();
    switch (MountProbe.of(source)) {
      case ABSENT ->
          throw MountFailure.usage(source, "source", "no such file or directory", "check the path");
      case STALE, BROKEN, HUNG ->
          throw MountFailure.usage(
              source, "source", "does not answer", "check that its file system is mounted");
      case DENIED ->
          throw MountFailure.usage(
              source, "source", "permission denied", "ask its owner for access");
      case ANSWERS -> {
        boolean tar = Files.isRegularFile(source) && mayBeTar(source);
        if (!tar && !Files.isDirectory(source)) {
          throw MountFailure.usage(
              source,
              "source",
              "not a directory",
              "name the dataset's directory or a tar file; --source-form tar accepts any name");
        }
        if (!Files.isReadable(source) || !(tar || Files.isExecutable(source))) {
          throw MountFailure.usage(
              source, "source", "permission denied", "ask its owner for access");
        }
      }
    }
  }

  private boolean mayBeTar(Path file) {
    return switch (settings.source().form()) {
      case "tar" -> true;
      case "auto" -> TAR_NAME.matcher(file.toString()).matches();
      default -> false;
    };
  }

  /** A daemon in the background has no descriptors of its caller. */
  private void checkDescriptor() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    if (settings.outputs() != null) {
      throw MountFailure.usage(
          mountpoint, "mount point", "does not work with --writable", "name a directory");
    }
    try {
      if (Files.readSymbolicLink(mountpoint).endsWith("fuse")) {
        return;
      }
    } catch (IOException e) {
      // As if it were another file.
    }
    throw MountFailure.usage(
        mountpoint,
        "mount point",
        "not an open /dev/fuse",
        "mount first, and start pmfs with --foreground and that descriptor");
  }

  private void checkMountpoint() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    if (!Files.exists(mountpoint)) {
      throw MountFailure.usage(
          mountpoint, "mount point", "no such directory", "create it: mkdir -p " + mountpoint);
    }
    if (!Files.isDirectory(mountpoint)) {
      throw MountFailure.usage(
          mountpoint, "mount point", "not a directory", "choose an empty directory");
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(mountpoint)) {
      if (entries.iterator().hasNext()) {
        throw MountFailure.usage(
            mountpoint, "mount point", "not empty", "choose an empty directory");
      }
      if (!surroundings.isRoot() && !MountRight.hasCapability(surroundings.root())) {
        checkMountpointOfUser(mountpoint);
      }
    } catch (IOException e) {
      throw MountFailure.usage(
          mountpoint, "mount point", Reason.of(e), "choose an empty directory of your own");
    }
  }

  /**
   * The rules of fusermount: write permission, and ownership if the sticky bit is set. Also, no
   * other user may be able to remove or replace the directory: the kernel detaches a mount whose
   * mount point is removed in another mount namespace.
   */
  private void checkMountpointOfUser(Path mountpoint) throws IOException, MountFailure {
    int owner = (Integer) Files.getAttribute(mountpoint, "unix:uid");
    String name = Files.getOwner(mountpoint).getName();
    int mode = (Integer) Files.getAttribute(mountpoint, "unix:mode");
    boolean foreign = owner != surroundings.uid();
    if (!Files.isWritable(mountpoint) || (foreign && (mode & STICKY) != 0)) {
      throw MountFailure.usage(
          mountpoint,
          "mount point",
          "not yours to mount on (owner " + name + ")",
          "name a directory of your own");
    }
    OwnPath.ofProcess().check(mountpoint);
  }

  private void checkNesting() throws MountFailure {
    Path source = settings.source().path();
    Path mountpoint = settings.mountpoint();
    if (source.startsWith(mountpoint)) {
      throw MountFailure.usage(
          mountpoint, "mount point", "would hide the source " + source, "name another directory");
    }
    // A walk of the mount would meet the mount again, without end.
    if (mountpoint.startsWith(source)) {
      throw MountFailure.usage(
          mountpoint,
          "mount point",
          "lies inside the source " + source,
          "name a directory outside of it");
    }
  }

  private void checkAllowOther() throws MountFailure {
    if (settings.bridge().allowOther()
        && !surroundings.isRoot()
        && !settings.isMountedByAnother()
        && (mounting == null || !mounting.permitsAllowOther())
        && !new MachineChecks(surroundings).userAllowOther()) {
      throw MountFailure.usage(
          mounting != null
              ? "--allow-other: with --user, root must give it on the command line"
              : "--allow-other: not allowed for users on this machine; ask for user_allow_other in"
                  + " /etc/fuse.conf");
    }
  }

  private void checkLinger() throws MountFailure {
    if (settings.bridge().linger().isZero()) {
      return;
    }
    if (!surroundings.isRoot() && mounting == null) {
      throw MountFailure.usage(
          "--linger: works only for root; another user's daemon ends with its last mount; leave it"
              + " out");
    }
    if (settings.outputs() != null || settings.bridge().kind().equals("jnr")) {
      throw MountFailure.usage(
          "--linger: does not work with --writable or --bridge jnr; leave out one of the two");
    }
  }

  /** Opening the log later checks whether it can be written. */
  private void checkAccessLog() throws MountFailure {
    Path file = settings.observation().accessLog();
    if (file == null) {
      return;
    }
    if (file.equals(settings.observation().logFile())) {
      throw MountFailure.usage(file, "access log", "is the log file", "name another file");
    }
  }

  /** The user for whom root could make a directory, named in the remedy; null without --user. */
  private @Nullable String userToMakeFor() {
    return mounting == null ? null : surroundings.userName();
  }

  private void checkState() throws MountFailure {
    Path state = settings.metadata().stateDirectory();
    if (state == null) {
      throw MountFailure.usage(
          "no tier is on a local disk, so there is no place for the state; give one with"
              + " --state-dir");
    }
    MountTable.Mount mount = mounts.holding(state);
    if (mount != null && mount.isNetwork()) {
      throw MountFailure.usage(
          state, "state", "on a network file system (" + mount.type() + ")", "set --state-dir");
    }
    new OwnDirectory(state, "state").make("choose another --state-dir", userToMakeFor());
  }
}
