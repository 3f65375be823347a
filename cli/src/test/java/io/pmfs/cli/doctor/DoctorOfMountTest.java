package io.pmfs.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cli.TestWorld;
import io.pmfs.machine.ExitStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code pmfs doctor MOUNTPOINT}. */
final class DoctorOfMountTest {
  @TempDir private Path temporary;
  private TestWorld world;
  private Path source;

  @BeforeEach
  void start() {
    world = new TestWorld(temporary);
    source = world.makeDirectory("src");
  }

  @Test
  void mount_allThere_isFine() throws Exception {
    assertThat(examine("keep-free = \"0\"")).isZero();
    assertThat(world.output())
        .containsPattern("ok +source +.*/src: answers")
        .containsPattern("ok +tier ssd +.*/tier: .* free")
        .containsPattern("ok +state +")
        .containsPattern("\npmfs can mount .*/mnt(, with \\d+ warnings?)?\\.\n$");
  }

  @Test
  void source_missing_fails() throws Exception {
    Files.delete(source);

    assertThat(examine("")).isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output())
        .containsPattern("fail +source +.*/src: missing; check")
        .containsPattern(
            "\npmfs cannot mount .*/mnt: 1 problem; first fix source: .*/src: missing.*\n$");
  }

  @Test
  void tier_withoutRoom_isAWarning() throws Exception {
    assertThat(examine("keep-free = \"100%\"")).isZero();
    assertThat(world.output()).containsPattern("warn +tier ssd .*leaves no room for copies");
  }

  @Test
  void cluster_ofThisMachine_canListen() throws Exception {
    world.environment.put("PMFS_CLUSTER_SECRET", "0123456789abcdef0123");

    assertThat(examine("keep-free = \"0\"\ncluster = \"t\"\nnodes = \"127.0.0.1\"")).isZero();
    assertThat(world.output())
        .containsPattern("ok +cluster address +127.0.0.1; open these TCP ports .* 20000 to 32767");
  }

  @Test
  void cluster_withAnAddressOfNoOne_fails() throws Exception {
    Path secret = Files.writeString(temporary.resolve("secret"), "0123456789abcdef0123", UTF_8);
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));

    assertThat(
            examine(
                "cluster = \"t\"\nnodes = \"127.0.0.1\"\ncluster-address = \"192.0.2.1\"\n"
                    + "cluster-secret-file = \""
                    + secret
                    + "\""))
        .isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output()).containsPattern("fail +(cluster|configuration) .*192.0.2.1");
  }

  @Test
  void configuration_wrong_fails() throws Exception {
    assertThat(examine("teir = \"x\"")).isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output()).containsPattern("fail +configuration .*did you mean 'tier'");
  }

  @Test
  void mountpoint_unknown_isSaidInTheLastLine() {
    assertThat(world.execute("doctor", "nope")).isEqualTo(ExitStatus.CANNOT);
    assertThat(world.output())
        .containsPattern(
            "\npmfs cannot mount .*/nope: .*/nope: neither mounted by pmfs nor in pmfs.toml;"
                + " pmfs status lists the mounts\n$");
  }

  private int examine(String lines) throws IOException {
    Path mountpoint = world.makeDirectory("mnt");
    Path file =
        Files.writeString(
            temporary.resolve("pmfs.toml"),
            "[mount.\"%s\"]\nsource = \"%s\"\ntier = \"ssd:%s/tier\"\n%s\n"
                .formatted(mountpoint, source, world.directory, lines),
            UTF_8);
    return world.execute("doctor", "--config", file.toString(), mountpoint.toString());
  }
}
