package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A snapshot of the mounts in /proc/self/mountinfo, proc(5). */
public final class MountTable {
  /** The file system type of our mounts: FUSE with the subtype pmfs. */
  public static final String PMFS_TYPE = "fuse.pmfs";

  private static final Set<String> NETWORK =
      Set.of(
          "9p",
          "acfs",
          "afs",
          "autofs",
          "beegfs",
          "ceph",
          "cifs",
          "coda",
          "dvs",
          "fhgfs",
          "gfs2",
          "glusterfs",
          "gpfs",
          "lustre",
          "mmfs",
          "ncpfs",
          "nfs",
          "nfs4",
          "ocfs2",
          "orangefs",
          "panfs",
          "pvfs2",
          "smb2",
          "smb3",
          "smbfs",
          "virtiofs",
          "wekafs");
  private static final Set<String> MEMORY = Set.of("tmpfs", "ramfs");

  /**
   * One mount.
   *
   * @param options the options of the mount and of its file system, comma-separated
   * @param device the device number of its file system, such as {@code 0:39}; for a pmfs mount it
   *     identifies the kernel's connection
   * @param isWhole whether it shows the whole file system, not only one of its directories
   * @param number the mount id, unique among current mounts
   */
  public record Mount(
      Path mountpoint,
      String type,
      String source,
      String options,
      String device,
      boolean isWhole,
      String number) {
    /** Whether both are of the same file system at the same mount point. */
    public boolean isSameAs(@Nullable Mount other) {
      return other != null
          && device.equals(other.device)
          && mountpoint.equals(other.mountpoint)
          && type.equals(other.type);
    }

    public boolean isPmfs() {
      return type.equals(PMFS_TYPE);
    }

    /** Whether the data may be on another machine, which includes all FUSE daemons. */
    public boolean isNetwork() {
      return NETWORK.contains(type) || type.equals("fuse") || type.startsWith("fuse.");
    }

    public boolean isLocalDisk() {
      return !isNetwork() && !MEMORY.contains(type);
    }

    /** The user whose daemon serves a FUSE mount, from its mount options; -1 if there is none. */
    public long userId() {
      for (String option : options.split(",", -1)) {
        if (option.matches("user_id=\\d{1,10}")) {
          return Long.parseLong(option.substring(option.indexOf('=') + 1));
        }
      }
      return -1;
    }

    public boolean hasOption(String option) {
      return Arrays.asList(options.split(",", -1)).contains(option);
    }
  }

  private final List<Mount> mounts;

  private MountTable(List<Mount> mounts) {
    this.mounts = mounts;
  }

  /** The table of this process; {@code root} is / except in tests. */
  public static MountTable load(Path root) throws IOException {
    return parse(new String(Files.readAllBytes(root.resolve("proc/self/mountinfo")), ISO_8859_1));
  }

  /** Parses mountinfo text whose characters are bytes; skips malformed lines. */
  public static MountTable parse(String bytes) {
    List<Mount> mounts = new ArrayList<>();
    for (String line : bytes.split("\n", -1)) {
      String[] fields = line.split(" ", -1);
      int separator = Arrays.asList(fields).indexOf("-");
      if (separator >= 6 && fields.length >= separator + 3) {
        String superOptions = fields.length > separator + 3 ? fields[separator + 3] : "";
        mounts.add(
            new Mount(
                Path.of(unescape(fields[4])),
                fields[separator + 1],
                unescape(fields[separator + 2]),
                fields[5] + "," + superOptions,
                fields[2],
                fields[3].equals("/"),
                fields[0]));
      }
    }
    return new MountTable(mounts);
  }

  private static String unescape(String field) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int i = 0; i < field.length(); i++) {
      char c = field.charAt(i);
      if (c == '\\' && field.length() - i > 3) {
        bytes.write(Integer.parseInt(field.substring(i + 1, i + 4), 8));
        i += 3;
      } else {
        bytes.write(c);
      }
    }
    return bytes.toString(UTF_8);
  }

  public @Nullable Mount at(Path mountpoint) {
    Mount found = null;
    for (Mount mount : mounts) {
      if (mount.mountpoint().equals(mountpoint)) {
        found = mount;
      }
    }
    return found;
  }

  /** A mount of the file system with this device number; null if there is none. */
  @Nullable
  public Mount of(String device) {
    for (Mount mount : mounts) {
      if (mount.device().equals(device)) {
        return mount;
      }
    }
    return null;
  }

  /**
   * The mount points of the session with this device number; none if it is null. The caller must
   * know that the session has not ended, because the kernel reuses the number.
   */
  public List<Path> placesOf(@Nullable String device) {
    return places(mount -> mount.device().equals(device));
  }

  /** The mount points of a mount's session, which may have ended meanwhile. */
  public List<Path> placesOf(Mount session) {
    return places(
        mount ->
            mount.device().equals(session.device()) && mount.source().equals(session.source()));
  }

  /** The mount points of the pmfs mounts that match. */
  public List<Path> places(Predicate<Mount> isWanted) {
    return mounts.stream()
        .filter(mount -> mount.isPmfs() && mount.isSameAs(at(mount.mountpoint())))
        .filter(mount -> mount.isWhole() && isWanted.test(mount))
        .map(Mount::mountpoint)
        .distinct()
        .toList();
  }

  /** The mount that contains a path, or null if the table lacks even the root. */
  public @Nullable Mount holding(Path path) {
    Mount found = null;
    for (Mount mount : mounts) {
      if (path.startsWith(mount.mountpoint())
          && (found == null
              || mount.mountpoint().getNameCount() >= found.mountpoint().getNameCount())) {
        found = mount;
      }
    }
    return found;
  }

  public List<Mount> all() {
    return List.copyOf(mounts);
  }
}
