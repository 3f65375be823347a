package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Collections;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ClusterSecretTest {
  private static final String SECRET = "0123456789abcdef";

  @TempDir Path directory;

  private Path file(String content, String permissions) throws IOException {
    Path file = Files.writeString(directory.resolve("secret"), content);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
    return file;
  }

  private static byte[] key(ClusterSecret secret) {
    return secret.requestKey().getEncoded();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-------", "r--------"})
  void ofFile_ownersOnly_isTheTextWithoutTheLineEnd(String permissions) throws IOException {
    ClusterSecret fromFile = ClusterSecret.ofFile(file(SECRET + "\r\n", permissions));
    assertThat(key(fromFile)).isEqualTo(key(ClusterSecret.ofText(SECRET, "variable")));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw----r--", "rw--w----", "rwx------"})
  void ofFile_othersMayUseIt_isRefused(String permissions) throws IOException {
    Path file = file(SECRET, permissions);
    assertThatThrownBy(() -> ClusterSecret.ofFile(file))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith("chmod 600 " + file);
  }

  @Test
  void ofFile_ofAnotherUser_isRefused() throws IOException {
    Path file = file(SECRET, "rw-------");
    assumeThat(Files.getAttribute(Path.of("/proc/self"), "unix:uid"))
        .as("only root can change a file's owner")
        .isEqualTo(0);
    Files.setAttribute(file, "unix:uid", 12_345);
    assertThatThrownBy(() -> ClusterSecret.ofFile(file)).hasMessageContaining("another user");
  }

  @Test
  void ofFile_directoryDeviceOrNothing_isRefused() {
    assertThatThrownBy(() -> ClusterSecret.ofFile(directory)).hasMessageContaining("regular file");
    assertThatThrownBy(() -> ClusterSecret.ofFile(Path.of("/dev/zero")))
        .hasMessageContaining("regular file");
    assertThatThrownBy(() -> ClusterSecret.ofFile(directory.resolve("none")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cannot be read");
  }

  @Test
  void ofDirectory_nobodyHasMadeOne_makesOneThatAllShare() throws Exception {
    Path shared = directory.resolve("job/shared");
    assertThat(ClusterSecret.ofDirectoryIfThere(shared)).isNull();
    List<Callable<byte[]>> nodes =
        Collections.nCopies(20, () -> key(ClusterSecret.ofDirectory(shared)));
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      Set<String> keys = new HashSet<>();
      for (Future<byte[]> node : threads.invokeAll(nodes)) {
        keys.add(HexFormat.of().formatHex(node.get()));
      }
      assertThat(keys).hasSize(1);
    } finally {
      threads.shutdown();
    }
    ClusterSecret there = ClusterSecret.ofDirectoryIfThere(shared);
    assertThat(key(Objects.requireNonNull(there)))
        .isEqualTo(key(ClusterSecret.ofDirectory(shared)));
    try (Stream<Path> files = Files.list(shared)) {
      assertThat(files).containsExactly(shared.resolve("secret"));
    }
    assertThat(Files.getPosixFilePermissions(shared.resolve("secret")))
        .isEqualTo(PosixFilePermissions.fromString("rw-------"));
    assertThat(Files.getPosixFilePermissions(shared))
        .isEqualTo(PosixFilePermissions.fromString("rwx------"));
  }

  @Test
  void ofDirectory_another_isAnother() {
    assertThat(key(ClusterSecret.ofDirectory(directory.resolve("a"))))
        .isNotEqualTo(key(ClusterSecret.ofDirectory(directory.resolve("b"))));
  }

  @Test
  void ofDirectory_whoseSecretOthersMayRead_isRefused() throws IOException {
    file(SECRET, "rw-r--r--");
    assertThatThrownBy(() -> ClusterSecret.ofDirectory(directory))
        .hasMessageContaining("chmod 600");
    assertThatThrownBy(() -> ClusterSecret.ofDirectoryIfThere(directory))
        .hasMessageContaining("chmod 600");
  }

  @Test
  void ofDirectory_thatIsAFile_saysHowToMakeOne() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "");
    assertThatThrownBy(() -> ClusterSecret.ofDirectory(file))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cannot be created")
        .hasMessageEndingWith(
            "create it with: umask 077; head -c 32 /dev/urandom | base64 > "
                + file.resolve("secret"));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 15, 4_097, 100_000})
  void secret_tooShortOrTooLong_isRefused(int size) throws IOException {
    String text = "x".repeat(size);
    assertThatThrownBy(() -> ClusterSecret.ofText(text, "PMFS_CLUSTER_SECRET"))
        .hasMessageStartingWith("PMFS_CLUSTER_SECRET: a secret must have 16 to 4,096 bytes");
    Path file = file(text + "\n", "rw-------");
    assertThatThrownBy(() -> ClusterSecret.ofFile(file)).hasMessageContaining("16 to 4,096 bytes");
  }

  @ParameterizedTest
  @ValueSource(ints = {16, 4_096})
  void secret_smallestAndLargest_isTaken(int size) throws IOException {
    assertThat(key(ClusterSecret.ofFile(file("x".repeat(size) + "\n", "rw-------")))).hasSize(32);
  }

  @Test
  void derive_labelsAndSecrets_giveDifferentKeys() {
    ClusterSecret secret = ClusterSecret.ofText(SECRET, "test");
    assertThat(secret.derive("a")).isNotEqualTo(secret.derive("b")).isEqualTo(secret.derive("a"));
    assertThat(secret.derive("a"))
        .isNotEqualTo(ClusterSecret.ofText(SECRET + "x", "test").derive("a"));
  }

  @Test
  void toString_secret_doesNotHaveIt() {
    assertThat(ClusterSecret.ofText(SECRET, "test").toString()).isEqualTo("ClusterSecret");
    assertThat(ClusterSecret.ofText(SECRET, "test").toString().getBytes(UTF_8)).hasSizeLessThan(16);
  }
}
