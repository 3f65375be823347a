package io.pmfs.daemon;

import io.pmfs.settings.ByteSize;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountProbe;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.MountTable;
import io.pmfs.settings.PoolPlace;
import io.pmfs.settings.Reason;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TierSpec;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What must hold before a mount is started; each failure is one line with a remedy. */
public final class MountChecks {
  private static final int STICKY = 01000;

  /** Those that cannot be served as well: what is wrong with them is said where they are opened. */
  private static final Pattern TAR_NAME =
      Pattern.compile(".*\\.(tar(\\.[a-z0-9]+)?|tgz|tbz2?|txz|tzst)", Pattern.CASE_INSENSITIVE);

  private final MountSettings settings;
  private final Surroundings surroundings;
  private final MountTable mounts;

  /** Who mounts for this process, having looked at the mount point; null if it mounts itself. */
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

  /** Throws on the first thing that is not as it must be. Makes missing tier directories, 0700. */
  public void run() throws MountFailure {
    checkUser();
    checkSource();
    if (mounting == null) {
      checkMountpoint();
    } else if (!Files.isDirectory(settings.mountpoint())) {
      throw usage(
          settings.mountpoint(),
          "mount point",
          "user " + surroundings.userName() + " cannot get there",
          "name a directory that the user can reach");
    }
    checkNesting();
    checkAllowOther();
    for (TierSpec tier : settings.copies().tiers()) {
      checkTier(tier);
    }
    checkState();
    checkAccessLog();
    if (mounting == null) {
      new MachineChecks(surroundings).requireFuse(settings.bridge().kind());
    }
  }

  private void checkUser() throws MountFailure {
    if (settings.bridge().user() != null && mounting == null) {
      throw MountFailure.usage(
          "--user: is for root, and has to be seen by the launcher scripts/pmfs; write it out on the"
              + " command line");
    }
    if (mounting != null && settings.bridge().kind().equals("jnr")) {
      throw MountFailure.usage(
          "--bridge jnr: with --user requests come by the kernel's protocol alone; leave out one of"
              + " the two");
    }
  }

  private void checkSource() throws MountFailure {
    Path source = settings.source().path();
    switch (MountProbe.of(source)) {
      case ABSENT -> throw usage(source, "source", "no such file or directory", "check the path");
      case STALE, BROKEN, HUNG ->
          throw usage(source, "source", "does not answer", "check that its file system is mounted");
      case DENIED -> throw usage(source, "source", "permission denied", "ask its owner for access");
      case ANSWERS -> {
        boolean tar = Files.isRegularFile(source) && mayBeTar(source);
        if (!tar && !Files.isDirectory(source)) {
          throw usage(
              source,
              "source",
              "not a directory",
              "name the dataset's directory or a tar file; --source-form tar takes one of any name");
        }
        if (!Files.isReadable(source) || !(tar || Files.isExecutable(source))) {
          throw usage(source, "source", "permission denied", "ask its owner for access");
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

  private void checkMountpoint() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    if (!Files.exists(mountpoint)) {
      throw usage(
          mountpoint, "mount point", "no such directory", "create it: mkdir -p " + mountpoint);
    }
    if (!Files.isDirectory(mountpoint)) {
      throw usage(mountpoint, "mount point", "not a directory", "choose an empty directory");
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(mountpoint)) {
      if (entries.iterator().hasNext()) {
        throw usage(mountpoint, "mount point", "not empty", "choose an empty directory");
      }
      if (!surroundings.isRoot()) {
        checkMountpointOfUser(mountpoint);
      }
    } catch (IOException e) {
      throw usage(mountpoint, "mount point", Reason.of(e), "choose an empty directory of your own");
    }
  }

  /** The rules of fusermount: write permission, and ownership where a sticky bit says so. */
  private void checkMountpointOfUser(Path mountpoint) throws IOException, MountFailure {
    int owner = (Integer) Files.getAttribute(mountpoint, "unix:uid");
    int mode = (Integer) Files.getAttribute(mountpoint, "unix:mode");
    boolean foreign = owner != surroundings.uid();
    if (!Files.isWritable(mountpoint) || (foreign && (mode & STICKY) != 0)) {
      throw usage(
          mountpoint,
          "mount point",
          "not yours to mount on (owner " + owner + ")",
          "name a directory of your own");
    }
  }

  private void checkNesting() throws MountFailure {
    Path source = settings.source().path();
    Path mountpoint = settings.mountpoint();
    if (source.startsWith(mountpoint)) {
      throw usage(
          mountpoint, "mount point", "would hide the source " + source, "name another directory");
    }
    // Then a walk of the mount would meet the mount again, without end.
    if (mountpoint.startsWith(source)) {
      throw usage(
          mountpoint,
          "mount point",
          "lies inside the source " + source,
          "name a directory outside of it");
    }
  }

  private void checkAllowOther() throws MountFailure {
    if (settings.bridge().allowOther()
        && !surroundings.isRoot()
        && (mounting == null || !mounting.permitsAllowOther())
        && !new MachineChecks(surroundings).userAllowOther()) {
      throw MountFailure.usage(
          mounting != null
              ? "--allow-other: with --user root has to give it on the command line"
              : "--allow-other: not allowed for users on this machine; ask for user_allow_other in"
                  + " /etc/fuse.conf");
    }
  }

  private void checkTier(TierSpec tier) throws MountFailure {
    Path path = tier.path();
    String what = "tier " + tier.kind();
    checkApart(path, what);
    if (PoolPlace.isPool(tier)) {
      PoolPlace.check(tier);
      return;
    }
    if (Files.exists(path) && !Files.isDirectory(path)) {
      throw usage(
          path, what, "not a directory", "name a directory; as pm:" + path + " it is a pool");
    }
    makeDirectory(path, what, "choose another --tier");
    try {
      checkRoom(tier, what);
    } catch (IOException e) {
      throw usage(path, what, Reason.of(e), "choose another --tier");
    }
  }

  /** Copies inside the source would become part of the dataset; below the mount, unreachable. */
  private void checkApart(Path path, String what) throws MountFailure {
    if (path.startsWith(settings.source().path())) {
      throw usage(
          path, what, "lies inside the source " + settings.source().path(), "choose another place");
    }
    if (path.startsWith(settings.mountpoint())) {
      throw usage(
          path,
          what,
          "lies inside the mount point " + settings.mountpoint(),
          "choose another place");
    }
  }

  /** Whether it can be written is seen where it is opened. */
  private void checkAccessLog() throws MountFailure {
    Path file = settings.observation().accessLog();
    if (file == null) {
      return;
    }
    checkApart(file, "access log");
    if (file.equals(settings.observation().logFile())) {
      throw usage(file, "access log", "is the log file", "name another file");
    }
  }

  private void makeDirectory(Path path, String what, String remedy) throws MountFailure {
    try {
      if (!Files.isDirectory(path)) {
        Files.createDirectories(
            path,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      }
      // access(2) says yes to root even where the file system is read-only or refuses: try it.
      Files.delete(Files.createTempFile(path, ".pmfs", ".probe"));
    } catch (IOException e) {
      throw usage(
          path,
          what,
          "cannot be used: " + Reason.of(e),
          mounting == null
              ? remedy
              : remedy
                  + ", or make it: install -d -m 700 -o %s %s"
                      .formatted(surroundings.userName(), path));
    }
  }

  private void checkRoom(TierSpec tier, String what) throws IOException, MountFailure {
    FileStore disk = Files.getFileStore(tier.path());
    long keep = settings.copies().keepFree().on(disk.getTotalSpace());
    long free = disk.getUsableSpace();
    // A full disk may be full of our own copies, which serve well.
    if (free <= keep && isEmpty(tier.path())) {
      throw usage(
          tier.path(),
          what,
          "nothing would fit: %s of %s are free and --keep-free %s keeps %s"
              .formatted(
                  ByteSize.format(free),
                  ByteSize.format(disk.getTotalSpace()),
                  settings.copies().keepFree(),
                  ByteSize.format(keep)),
          "lower --keep-free or choose another --tier");
    }
  }

  private static boolean isEmpty(Path directory) throws IOException {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
      return !entries.iterator().hasNext();
    }
  }

  private void checkState() throws MountFailure {
    Path state = settings.metadata().stateDirectory();
    if (state == null) {
      throw MountFailure.usage(
          "no tier is on a local disk, so there is no place for the state; give one with"
              + " --state-dir");
    }
    checkApart(state, "state");
    MountTable.Mount mount = mounts.holding(state);
    if (mount != null && mount.isNetwork()) {
      throw usage(
          state, "state", "on a network file system (" + mount.type() + ")", "set --state-dir");
    }
    makeDirectory(state, "state", "choose another --state-dir");
  }

  private static MountFailure usage(Path path, String what, String why, String remedy) {
    return MountFailure.usage(path + ": " + what + ": " + why + "; " + remedy);
  }
}
