package io.pmfs.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
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
        .as("only root can give a file away")
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

  @ParameterizedTest
  @ValueSource(ints = {0, 15, 4_097, 100_000})
  void secret_tooShortOrTooLong_isRefused(int size) throws IOException {
    String text = "x".repeat(size);
    assertThatThrownBy(() -> ClusterSecret.ofText(text, "PMFS_CLUSTER_SECRET"))
        .hasMessageStartingWith("PMFS_CLUSTER_SECRET: a secret has 16 to 4,096 bytes");
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
