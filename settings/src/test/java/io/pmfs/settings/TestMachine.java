package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A machine in a directory: /proc, /dev and /etc as files, an environment as a map. */
public class TestMachine {
  private static final String LOCAL_ROOT = "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";

  private static final String ROOTS_STATUS = "Name:\tjava\nCapEff:\t000001ffffffffff\n";

  public final Path directory;
  public final Path root;
  public final Map<String, String> environment = new HashMap<>();
  public long uid;

  public TestMachine(Path temporary) {
    try {
      directory = temporary.toRealPath();
      root = directory.resolve("root");
      uid = ((Integer) Files.getAttribute(directory, "unix:uid")).longValue();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    write("proc/self/mountinfo", LOCAL_ROOT);
    write("proc/self/status", ROOTS_STATUS);
    write("proc/self/limits", "Max open files            1024         524288       files\n");
    write("proc/sys/kernel/osrelease", "6.12.0-1-amd64\n");
    write("dev/fuse", "");
    write("etc/ld.so.cache", "glibc-ld.so.cache1.1\0libfuse.so.2\0/lib/libfuse.so.2\0");
    environment.put("PMFS_RUNTIME_DIR", directory.resolve("run").toString());
    environment.put("PMFS_CACHE_DIR", directory.resolve("cache").toString());
    environment.put("HOME", directory.resolve("home").toString());
  }

  /** Writes a file below the root atomically. */
  public void write(String path, String text) {
    try {
      Path file = root.resolve(path);
      Files.createDirectories(file.resolveSibling(""));
      Path next = Files.writeString(file.resolveSibling(file.getFileName() + ".new"), text, UTF_8);
      Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String read(String path) {
    try {
      return Files.readString(root.resolve(path), UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A PATH with only that program, or an empty one. */
  public void fusermount(@Nullable String name) throws IOException {
    Path bin = makeDirectory("bin");
    environment.put("PATH", bin.toString());
    if (name != null) {
      Path program = Files.writeString(bin.resolve(name), "");
      Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
  }

  public void mountinfo(String... lines) {
    write("proc/self/mountinfo", LOCAL_ROOT + String.join("\n", lines) + "\n");
  }

  public static String line(Path mountpoint, String type, String source) {
    return "2 1 0:30 / %s ro,nosuid - %s %s ro".formatted(mountpoint, type, source);
  }

  public Path makeDirectory(String name) {
    try {
      return Files.createDirectories(directory.resolve(name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Other users than root have no capability, unless a test gave them one. */
  public Surroundings surroundings() {
    if (uid != 0 && read("proc/self/status").equals(ROOTS_STATUS)) {
      write("proc/self/status", "Name:\tjava\nCapEff:\t0000000000000000\n");
    }
    return new Surroundings(Map.copyOf(environment), directory, uid, "ada", root);
  }

  public Registry registry() throws MountFailure {
    return Registry.open(surroundings());
  }

  /** The option of a constant's name, for the tables of tests. */
  static MountOption<?> option(String name) {
    return MountOption.values().stream()
        .filter(option -> option.variable().equals("PMFS_" + name))
        .findFirst()
        .orElseThrow();
  }

  /** Settings that pass all checks, with directories src and mnt. */
  public MountSettings settings(Map<MountOption<?>, List<String>> options) throws MountFailure {
    return configuration(options, null).toSettings(surroundings());
  }

  public Configuration configuration(
      Map<MountOption<?>, List<String>> options, @Nullable String file) throws MountFailure {
    return Configuration.resolve(
        new Configuration.Request(
            options, file, makeDirectory("src").toString(), makeDirectory("mnt").toString()),
        surroundings());
  }
}
