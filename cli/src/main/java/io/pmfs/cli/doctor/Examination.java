package io.pmfs.cli.doctor;

import io.pmfs.daemon.process.BridgeChoice;
import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.daemon.process.MachineChecks;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.Registry;
import io.pmfs.places.DefaultTier;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.BlockDevice;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Checks one machine for {@code pmfs doctor}. */
final class Examination {
  private static final int SET_USER = 04000;
  private static final Pattern RELEASE = Pattern.compile("(\\d+)\\.(\\d+).*", Pattern.DOTALL);

  private final Surroundings surroundings;
  private final MachineChecks machine;
  private final List<Finding> findings = new ArrayList<>();

  Examination(Surroundings surroundings) {
    this.surroundings = surroundings;
    this.machine = new MachineChecks(surroundings);
  }

  List<Finding> run() {
    java();
    String release = firstLine("proc/sys/kernel/osrelease");
    kernel(release);
    architecture();
    required("/dev/fuse", machine.device(), "can be opened");
    bridge();
    mounting();
    fusermount();
    utilities();
    allowOther();
    passthrough(release);
    mountsForUsers();
    findings.addAll(new ResourceChecks(surroundings.root()).run());
    runtimeDirectory();
    try {
      MountTable mounts = surroundings.mounts();
      dax(mounts);
      daxDevices();
      defaultTier(mounts);
      pmfsMounts(mounts);
    } catch (MountFailure e) {
      add(Finding.Grade.FAIL, "mounts", e.line());
    }
    return findings;
  }

  private void java() {
    Runtime.Version version = Runtime.version();
    ok("java", version + " at " + System.getProperty("java.home"));
  }

  private void kernel(String release) {
    if (isAtLeast(release, 6, 9)) {
      ok("kernel", release);
    } else if (isAtLeast(release, 4, 18)) {
      ok(
          "kernel",
          release + ": works; from 6.9 on, readers do not notice when a daemon of root dies");
    } else {
      warn("kernel", release + ": older than 4.18, the oldest that pmfs supports");
    }
  }

  private static boolean isAtLeast(String release, int major, int minor) {
    Matcher matcher = RELEASE.matcher(release);
    if (!matcher.matches()) {
      return false;
    }
    int found = Integer.parseInt(matcher.group(1));
    return found > major || (found == major && Integer.parseInt(matcher.group(2)) >= minor);
  }

  private void architecture() {
    String name = System.getProperty("os.arch", "unknown");
    if (name.equals("amd64") || name.equals("aarch64")) {
      ok("architecture", name);
    } else {
      warn("architecture", name + ": not tested; pmfs is tested on amd64 and aarch64");
    }
  }

  private void required(String subject, @Nullable String problem, String fine) {
    if (problem == null) {
      ok(subject, fine);
    } else {
      add(Finding.Grade.FAIL, subject, problem);
    }
  }

  private void bridge() {
    String missing = machine.library();
    BridgeChoice choice = BridgeChoice.of("auto", surroundings);
    ok("bridge", choice.name() + " (" + choice.reason() + ")");
    if (missing != null && choice.isKernel()) {
      ok("libfuse", "no libfuse.so.2; only --bridge jnr needs it");
    } else {
      required("libfuse", missing, "libfuse.so.2 in " + machine.libraryPlace());
    }
  }

  private void fusermount() {
    Path program = ExternalUnmount.findFusermount(surroundings);
    if (program != null) {
      fusermountMode(program);
    } else if (surroundings.isRoot()) {
      warn(
          "fusermount",
          "not found; users other than root need it: apt-get install fuse3, or dnf install fuse3");
    }
  }

  private void mounting() {
    String problem = machine.permission();
    String ofPrivate = machine.privateMounts();
    if (problem != null && ofPrivate == null && !surroundings.isRoot()) {
      warn("permission", problem + "; without it only pmfs run mounts, as with --private");
    } else {
      required(
          "permission",
          problem,
          surroundings.isRoot() ? "root with CAP_SYS_ADMIN" : "mounts with fusermount");
    }
    if (ofPrivate == null) {
      ok("run --private", "possible for users");
    } else {
      warn("run --private", "not possible: " + ofPrivate);
    }
  }

  /** Programs that the launcher and pmfs run start. */
  private void utilities() {
    for (String program : List.of("setsid", "flock")) {
      if (surroundings.findProgram(program) == null) {
        add(
            Finding.Grade.FAIL,
            program,
            "not found; mounts need it: apt-get install util-linux, or dnf install util-linux");
      }
    }
  }

  /** The set-user-ID bit lets fusermount mount with root's rights. */
  private void fusermountMode(Path program) {
    try {
      boolean setsUser = ((Integer) Files.getAttribute(program, "unix:mode") & SET_USER) != 0;
      if (setsUser || surroundings.isRoot()) {
        ok("fusermount", program.toString());
      } else {
        warn(
            "fusermount",
            program + ": not set-user-ID root, so it cannot mount; chmod u+s " + program);
      }
    } catch (IOException e) {
      warn("fusermount", program + ": " + Reason.of(e));
    }
  }

  private void allowOther() {
    if (surroundings.isRoot() || machine.userAllowOther()) {
      ok("allow-other", "permitted");
    } else {
      warn("allow-other", "needs user_allow_other in /etc/fuse.conf; other mounts do not");
    }
  }

  private void passthrough(String release) {
    if (!isAtLeast(release, 6, 9)) {
      warn("passthrough", "unlikely: needs kernel 6.9 or later; page-cache mode works on all");
    } else if (!machine.canMount()) {
      warn("passthrough", "unlikely: needs CAP_SYS_ADMIN; page-cache mode works without it");
    } else {
      ok("passthrough", "likely, judging by the kernel's version; only a mount can tell");
    }
  }

  private void mountsForUsers() {
    if (!surroundings.isRoot()) {
      return;
    }
    if (surroundings.findProgram("setpriv") == null) {
      warn(
          "mount --user",
          "setpriv: not found, but required: apt-get install util-linux, or dnf install"
              + " util-linux");
    } else {
      ok(
          "mount --user",
          "possible; passthrough then needs --passthrough-capability, which gives the daemon nearly"
              + " root's power");
    }
  }

  private void runtimeDirectory() {
    try {
      ok("runtime directory", Registry.open(surroundings).directory().toString());
    } catch (MountFailure e) {
      add(Finding.Grade.FAIL, "runtime directory", e.line());
    }
  }

  private void dax(MountTable mounts) {
    List<String> places = new ArrayList<>();
    Set<String> mounted = new HashSet<>();
    for (MountTable.Mount mount : mounts.all()) {
      BlockDevice device = device(mount.source());
      String place = "%s (%s)".formatted(mount.mountpoint(), mount.type());
      if (device != null) {
        mounted.add(device.name());
      }
      if (mount.hasOption("dax") || mount.hasOption("dax=always")) {
        places.add(place);
      } else if (device != null && Boolean.TRUE.equals(device.offersDax())) {
        warn("DAX", place + " is mounted without DAX: mount it with -o dax=always");
      }
    }
    if (!places.isEmpty()) {
      ok("DAX", String.join(", ", places) + ": a place for --tier pm:PATH");
    }
    boolean found = unmountedMemory(mounted) || !places.isEmpty();
    if (!found && findings.stream().noneMatch(finding -> finding.subject().equals("DAX"))) {
      ok("DAX", "no persistent memory with a file system; --tier pm:PATH is meant for it");
    }
  }

  /** Warns of persistent memory without a mounted file system; returns whether there is any. */
  private boolean unmountedMemory(Set<String> mounted) {
    boolean found = false;
    Path devices = surroundings.root().resolve("sys/block");
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(devices, "pmem*")) {
      for (Path entry : entries) {
        BlockDevice device = BlockDevice.fromSysfs(entry);
        if (device == null || isUsed(entry, device, mounted)) {
          continue;
        }
        found = true;
        if (Boolean.FALSE.equals(device.offersDax())) {
          warn(
              "DAX",
              "/dev/%s is not in mode fsdax: ndctl create-namespace --mode=fsdax recreates it"
                  .formatted(device.name()));
        } else {
          warn(
              "DAX",
              "/dev/%s is not mounted: create ext4 or xfs on it, and mount it with -o dax=always"
                  .formatted(device.name()));
        }
      }
    } catch (IOException e) {
      // No sysfs, or no such devices.
      return found;
    }
    return found;
  }

  /** Whether the device or a partition of it is mounted, or another device uses it. */
  private static boolean isUsed(Path entry, BlockDevice device, Set<String> mounted)
      throws IOException {
    for (String name : mounted) {
      if (name.equals(device.name()) || name.startsWith(device.name() + "p")) {
        return true;
      }
    }
    try (DirectoryStream<Path> holders = Files.newDirectoryStream(entry.resolve("holders"))) {
      return holders.iterator().hasNext();
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  private @Nullable BlockDevice device(String source) {
    if (!source.startsWith("/dev/")) {
      return null;
    }
    Path root = surroundings.root();
    Path node = surroundings.resolveLinks(root.resolve(source.substring(1)));
    return BlockDevice.fromSysfs(root.resolve("sys/class/block").resolve(node.getFileName()));
  }

  /** Devices without a device file are skipped: the kernel uses them as ordinary memory. */
  private void daxDevices() {
    List<String> found = new ArrayList<>();
    Path devices = surroundings.root().resolve("sys/bus/dax/devices");
    try (DirectoryStream<Path> names = Files.newDirectoryStream(devices)) {
      for (Path device : names) {
        String name = String.valueOf(device.getFileName());
        if (Files.exists(surroundings.root().resolve("dev").resolve(name))) {
          long size = Long.parseLong(Files.readString(device.resolve("size")).trim());
          found.add("/dev/%s (%s)".formatted(name, ByteSize.format(size)));
        }
      }
    } catch (NoSuchFileException e) {
      return;
    } catch (IOException | NumberFormatException e) {
      warn("dax devices", Reason.of(e));
      return;
    }
    if (!found.isEmpty()) {
      found.sort(null);
      ok("dax devices", String.join(", ", found) + ": pools for --tier pm:DEVICE");
    }
  }

  private void defaultTier(MountTable mounts) {
    try {
      DefaultTier.Choice choice = DefaultTier.choose(surroundings, mounts);
      FileStore disk = Files.getFileStore(DefaultTier.nearestExisting(choice.tier().path()));
      long free = disk.getUsableSpace();
      String text =
          "%s, %s of %s free"
              .formatted(
                  choice.tier().path(),
                  ByteSize.format(free),
                  ByteSize.format(disk.getTotalSpace()));
      if (free > disk.getTotalSpace() / 10) {
        ok("default tier", text);
      } else {
        warn("default tier", text + ": pmfs leaves 10% free, so nothing fits; use --tier");
      }
    } catch (MountFailure e) {
      warn("default tier", e.line());
    } catch (IOException e) {
      warn("default tier", Reason.of(e));
    }
  }

  private void pmfsMounts(MountTable mounts) {
    List<String> running = new ArrayList<>();
    for (MountTable.Mount mount : mounts.all()) {
      if (!mount.isPmfs()) {
        continue;
      }
      Path mountpoint = mount.mountpoint();
      switch (MountProbe.of(mountpoint)) {
        case STALE -> warn("stale mount", mountpoint + ": pmfs umount " + mountpoint);
        case HUNG -> warn("hung mount", mountpoint + ": pmfs umount --lazy " + mountpoint);
        default -> running.add(mountpoint.toString());
      }
    }
    ok("mounts", running.isEmpty() ? "none" : String.join(", ", running));
  }

  private String firstLine(String file) {
    try {
      return Files.readAllLines(surroundings.root().resolve(file)).get(0);
    } catch (IOException | RuntimeException e) {
      return "unknown";
    }
  }

  private void ok(String subject, String text) {
    add(Finding.Grade.OK, subject, text);
  }

  private void warn(String subject, String text) {
    add(Finding.Grade.WARN, subject, text);
  }

  private void add(Finding.Grade grade, String subject, String text) {
    findings.add(new Finding(grade, subject, text));
  }
}
