package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * The secret that only the members of a cluster know. It is never printed; only keys derived from
 * it leave this class (HKDF with HMAC-SHA256, RFC 5869). Immutable.
 */
public final class ClusterSecret {
  /** Sizes in bytes. */
  static final int MIN_SIZE = 16;

  static final int MAX_SIZE = 4_096;

  /** The name of the secret's file in a directory that nodes share. */
  static final String FILE = "secret";

  private static final int MADE_BYTES = 32;
  private static final String HMAC = "HmacSHA256";
  private static final byte[] SALT = "pmfs cluster".getBytes(UTF_8);
  private static final Set<PosixFilePermission> ALLOWED =
      EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE);

  /** The pseudorandom key of RFC 5869. */
  private final byte[] extracted;

  private ClusterSecret(byte[] extracted) {
    this.extracted = extracted;
  }

  private ClusterSecret(byte[] secret, String origin) {
    if (secret.length < MIN_SIZE || secret.length > MAX_SIZE) {
      throw new IllegalArgumentException(
          origin
              + (": a secret must have %,d to %,d bytes; make one with: "
                      + "head -c 32 /dev/urandom | base64")
                  .formatted(MIN_SIZE, MAX_SIZE));
    }
    extracted = hmac(SALT, secret);
  }

  /**
   * The secret in a text, without a trailing line end; for an environment variable.
   *
   * @param origin where the text is from, for messages
   */
  public static ClusterSecret ofText(String text, String origin) {
    return new ClusterSecret(withoutLineEnd(text.getBytes(UTF_8)), origin);
  }

  /**
   * The secret in a file, without a trailing line end.
   *
   * @throws IllegalArgumentException with a one-line message, if the file cannot be read, is not a
   *     regular file, belongs to another user or may be read or written by others
   */
  public static ClusterSecret ofFile(Path file) {
    try {
      check(file);
      try (InputStream in = Files.newInputStream(file)) {
        return new ClusterSecret(
            withoutLineEnd(in.readNBytes(MAX_SIZE + 3)), file + ": cluster secret");
      }
    } catch (IOException e) {
      throw new IllegalArgumentException(file + ": cluster secret: cannot be read: " + e, e);
    }
  }

  /**
   * The secret in a directory that all nodes share. The first node creates it, and the directory if
   * there is none; only its user may read them.
   *
   * @throws IllegalArgumentException as {@link #ofFile}, or if it cannot be created
   */
  public static ClusterSecret ofDirectory(Path directory) {
    Path file = directory.resolve(FILE);
    if (!Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
      try {
        make(file);
      } catch (IOException | UnsupportedOperationException e) {
        throw new IllegalArgumentException(
            file
                + ": cluster secret: cannot be created ("
                + e
                + "); create it with: umask 077; head -c 32 /dev/urandom | base64 > "
                + file,
            e);
      }
    }
    return ofFile(file);
  }

  /** The secret in that directory; null if no node has created it yet. */
  public static @Nullable ClusterSecret ofDirectoryIfThere(Path directory) {
    Path file = directory.resolve(FILE);
    return Files.exists(file, LinkOption.NOFOLLOW_LINKS) ? ofFile(file) : null;
  }

  /** Creates the file as a whole or not at all; a file that another node created first stays. */
  private static void make(Path file) throws IOException {
    byte[] random = new byte[MADE_BYTES];
    new SecureRandom().nextBytes(random);
    Path next = file.resolveSibling(FILE + "." + UUID.randomUUID());
    Files.createDirectories(next.toAbsolutePath().getParent(), mode("rwx------"));
    Files.createFile(next, mode("rw-------"));
    try {
      Files.writeString(next, Base64.getEncoder().encodeToString(random) + "\n", UTF_8);
      Files.createLink(file, next);
    } catch (FileAlreadyExistsException e) {
      // All nodes use the secret of the node that was first.
    } finally {
      Files.deleteIfExists(next);
    }
  }

  private static FileAttribute<Set<PosixFilePermission>> mode(String mode) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode));
  }

  /** The secret in a text from {@link #kept}; throws IllegalArgumentException if malformed. */
  public static ClusterSecret ofKept(String text) {
    return new ClusterSecret(HexFormat.of().parseHex(text));
  }

  /** The secret as text, as sensitive as the secret itself: for a file of mode 0600. */
  public String kept() {
    return HexFormat.of().formatHex(extracted);
  }

  private static void check(Path file) throws IOException {
    Map<String, Object> attributes =
        Files.readAttributes(file, "unix:uid,permissions,isRegularFile");
    if (!Boolean.TRUE.equals(attributes.get("isRegularFile"))) {
      throw new IllegalArgumentException(file + ": cluster secret: is not a regular file");
    }
    Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    if (!user.equals(attributes.get("uid"))) {
      throw new IllegalArgumentException(
          file + ": cluster secret: belongs to another user; chown it to the user who mounts");
    }
    if (!(attributes.get("permissions") instanceof Set<?> permissions)
        || !ALLOWED.containsAll(permissions)) {
      throw new IllegalArgumentException(
          file + ": cluster secret: others may read or write it; chmod 600 " + file);
    }
  }

  private static byte[] withoutLineEnd(byte[] bytes) {
    int size = bytes.length;
    if (size > 0 && bytes[size - 1] == '\n') {
      size--;
      if (size > 0 && bytes[size - 1] == '\r') {
        size--;
      }
    }
    return Arrays.copyOf(bytes, size);
  }

  /** The key that signs requests to peers: 32 bytes for HMAC-SHA256. */
  public SecretKey requestKey() {
    return new SecretKeySpec(derive("requests"), HMAC);
  }

  /** 32 bytes for one purpose, independent of those for any other. */
  byte[] derive(String label) {
    // RFC 5869, section 2.3: the first block of the expansion.
    byte[] info = Arrays.copyOf(label.getBytes(UTF_8), label.getBytes(UTF_8).length + 1);
    info[info.length - 1] = 1;
    return hmac(extracted, info);
  }

  private static byte[] hmac(byte[] key, byte[] message) {
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(new SecretKeySpec(key, HMAC));
      return mac.doFinal(message);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime lacks " + HMAC, e);
    }
  }

  @Override
  public String toString() {
    return "ClusterSecret";
  }
}
