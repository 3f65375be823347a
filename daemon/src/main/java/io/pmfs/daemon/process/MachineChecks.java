package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.mounting.MountRight;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Checks what FUSE needs. Each returns null when satisfied. */
public final class MachineChecks {
  private static final int TRIAL_SECONDS = 5;
  private static final String LIBRARY = "libfuse.so.2";

  private final Surroundings surroundings;

  public MachineChecks(Surroundings surroundings) {
    this.surroundings = surroundings;
  }

  /** Throws for the first problem that makes mounting impossible. */
  public void requireFuse(String bridge) throws MountFailure {
    String library = BridgeChoice.of(bridge, surroundings).isKernel() ? null : library();
    for (String problem : Arrays.asList(device(), permission(), library)) {
      if (problem != null) {
        throw new MountFailure(ExitStatus.CANNOT, problem);
      }
    }
  }

  public @Nullable String device() {
    Path device = surroundings.root().resolve("dev/fuse");
    try (FileChannel channel =
        FileChannel.open(device, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.isOpen() ? null : device + ": closed itself";
    } catch (NoSuchFileException e) {
      return device
          + ": missing; load the module (modprobe fuse) or give the container"
          + " --device /dev/fuse";
    } catch (IOException e) {
      String remedy =
          surroundings.isRoot()
              ? "load the module (modprobe fuse) or give the container --device /dev/fuse"
              : accessRemedy(device);
      return device + ": cannot be opened: " + Reason.of(e) + "; " + remedy;
    }
  }

  /** On some systems only a group may use the device. */
  private static String accessRemedy(Path device) {
    try {
      int mode = (Integer) Files.getAttribute(device, "unix:mode");
      String group = Files.readAttributes(device, PosixFileAttributes.class).group().getName();
      if ((mode & 0060) == 0060 && !group.equals("root")) {
        return "only group %s may use it: usermod -a -G %s USER, then log in again"
            .formatted(group, group);
      }
    } catch (IOException | RuntimeException e) {
      return "it needs mode 0666 for users";
    }
    return "it needs mode 0666 for users";
  }

  public @Nullable String library() {
    if (libraryPlace() != null) {
      return null;
    }
    return LIBRARY + ": not found; apt-get install libfuse2, or dnf install fuse-libs";
  }

  /** Where libfuse was found, or null. */
  public @Nullable String libraryPlace() {
    Path cache = surroundings.root().resolve("etc/ld.so.cache");
    try {
      // The cache of ldconfig(8) is binary, but names in it are plain and end with NUL.
      if (new String(Files.readAllBytes(cache), ISO_8859_1).contains(LIBRARY + "\0")) {
        return "ld.so.cache";
      }
    } catch (IOException e) {
      // No such cache: search the directories.
    }
    for (Path directory : libraryDirectories()) {
      if (Files.exists(directory.resolve(LIBRARY))) {
        return directory.toString();
      }
    }
    return null;
  }

  private List<Path> libraryDirectories() {
    List<Path> directories = new ArrayList<>();
    String path = surroundings.variable("LD_LIBRARY_PATH");
    if (path != null) {
      Arrays.stream(path.split(":", -1))
          .filter(d -> !d.isEmpty())
          .forEach(d -> directories.add(surroundings.resolve(d)));
    }
    for (String usual :
        List.of(
            "lib64",
            "usr/lib64",
            "lib",
            "usr/lib",
            "lib/x86_64-linux-gnu",
            "usr/lib/x86_64-linux-gnu",
            "lib/aarch64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
            "usr/local/lib")) {
      directories.add(surroundings.root().resolve(usual));
    }
    return directories;
  }

  public @Nullable String permission() {
    if (surroundings.isRoot()) {
      return canMount()
          ? null
          : "mount(2): not permitted: root without CAP_SYS_ADMIN; give the container --cap-add"
              + " SYS_ADMIN";
    }
    return !canMount() && ExternalUnmount.findFusermount(surroundings) == null
        ? "fusermount: not found; users need it to mount: apt-get install fuse3, or dnf install"
            + " fuse3"
        : null;
  }

  /** Whether this process has CAP_SYS_ADMIN, at least in its own user namespace. */
  public boolean canMount() {
    return MountRight.hasCapability(surroundings.root());
  }

  /** What {@code pmfs run --private} needs: user namespaces for users, and two programs. */
  public @Nullable String privateMounts() {
    for (String program : List.of("unshare", "setpriv", "mount")) {
      if (surroundings.findProgram(program) == null) {
        return program + ": not found; apt-get install util-linux mount, or dnf install util-linux";
      }
    }
    for (Setting setting : Setting.ALL) {
      if (setting.forbidding().equals(number(setting.name()))) {
        return "%s is %s; as root: sysctl -w %s=%s"
            .formatted(setting.name(), setting.forbidding(), setting.name(), setting.permitting());
      }
    }
    return trial();
  }

  /** A setting of sysctl(8) that may forbid user namespaces to users. */
  private record Setting(String name, String forbidding, String permitting) {
    /** Those of the kernel, of Debian's, and of Ubuntu's with AppArmor. */
    static final List<Setting> ALL =
        List.of(
            new Setting("user.max_user_namespaces", "0", "15000"),
            new Setting("user.max_mnt_namespaces", "0", "15000"),
            new Setting("kernel.unprivileged_userns_clone", "0", "1"),
            new Setting("kernel.apparmor_restrict_unprivileged_userns", "1", "0"));
  }

  /** The value of a setting; empty if the kernel does not have it. */
  private String number(String setting) {
    try {
      Path file = surroundings.root().resolve("proc/sys").resolve(setting.replace('.', '/'));
      // Not Files.readString: see UserNamespace.
      return Files.readAllLines(file, ISO_8859_1).get(0).strip();
    } catch (IOException | IndexOutOfBoundsException e) {
      return "";
    }
  }

  /** Only an attempt shows what a container or a security module forbids. */
  private static @Nullable String trial() {
    List<String> line = new ArrayList<>(List.of("unshare", "--user", "--map-current-user"));
    line.addAll(List.of("--mount", "--keep-caps", "true"));
    try {
      Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
      if (!process.waitFor(TRIAL_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return "unshare does not end";
      }
      String output = new String(process.getInputStream().readNBytes(4096), UTF_8).strip();
      return process.exitValue() == 0
          ? null
          : output.replace('\n', ' ')
              + "; util-linux must be 2.36 or later, and a container must permit user namespaces";
    } catch (IOException e) {
      return "unshare: " + Reason.of(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "interrupted";
    }
  }

  /** Whether /etc/fuse.conf lets users share their mounts. */
  public boolean userAllowOther() {
    try {
      return Files.readAllLines(surroundings.root().resolve("etc/fuse.conf"), ISO_8859_1).stream()
          .anyMatch(line -> line.strip().equals("user_allow_other"));
    } catch (IOException e) {
      return false;
    }
  }
}
