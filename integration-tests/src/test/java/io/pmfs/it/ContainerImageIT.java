package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.command.CreateContainerCmd;
import com.github.dockerjava.api.model.BindOptions;
import com.github.dockerjava.api.model.BindPropagation;
import com.github.dockerjava.api.model.Mount;
import com.github.dockerjava.api.model.MountType;
import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.images.builder.ImageFromDockerfile;
import org.testcontainers.utility.DockerImageName;
import org.yaml.snakeyaml.Yaml;

/**
 * The image of distribution/container, run as docs/kubernetes/sidecar.yaml says: one container
 * mounts, another reads, and the commands are those of the manifest. A container engine stands in
 * for Kubernetes: SYS_ADMIN and the device for {@code privileged}, rshared for Bidirectional,
 * rslave for HostToContainer.
 */
@Tag("docker")
@OnRequest(value = "package", what = "the container image")
final class ContainerImageIT {
  private static final Path CHECKOUT =
      Installation.launcherOfCheckout().resolve("../..").normalize();
  private static final String IMAGE = "pmfs-test:image";
  private static final int DEADLINE_SECONDS = 60;
  private static final Duration SOON = Duration.ofSeconds(DEADLINE_SECONDS);

  /** Reads past the page cache until told to stop or a read fails, with another file held open. */
  private static final String READ =
      """
      exec 4<"$1/part-000/file-00001"
      while [ ! -e /tmp/stop ]; do
        LC_ALL=C dd if="$1/part-000/file-00000" iflag=direct bs=1M status=none >/tmp/content 2>/tmp/error || break
        cmp /source/part-000/file-00000 /tmp/content >/tmp/error 2>&1 || break
        echo read >>/tmp/reads
        sleep 0.02
      done
      touch /tmp/waits
      while [ ! -e /tmp/stop ]; do sleep 0.1; done
      LC_ALL=C dd iflag=direct bs=1M status=none <&4 >/dev/null 2>/tmp/held
      echo $? >>/tmp/held
      exec 4<&-
      touch /tmp/ended
      exec sleep 1000
      """;

  private static boolean imageIsMade;

  private final List<GenericContainer<?>> containers = new ArrayList<>();
  private Scratch scratch;
  private JsonObject sidecar;
  private JsonObject train;

  @BeforeEach
  void prepare() throws IOException {
    Containers.require();
    makeImage(CleanDebian.built("64.tar.gz", "scripts/package"));
    scratch = new Scratch();
    Dataset.create(scratch.directory("source"), Dataset.sizes(20, 100_000));
    scratch.directory("cache");
    scratch.sharedBind("mounts");
    Object manifest =
        new Yaml().load(Files.readString(CHECKOUT.resolve("docs/kubernetes/sidecar.yaml")));
    JsonObject job = new Gson().toJsonTree(manifest).getAsJsonObject();
    JsonObject pod = object(job, "spec", "template", "spec");
    sidecar = pod.getAsJsonArray("initContainers").get(0).getAsJsonObject();
    train = pod.getAsJsonArray("containers").get(0).getAsJsonObject();
  }

  private static synchronized void makeImage(Path archive) {
    if (!imageIsMade) {
      CleanDebian.makeImage();
      new ImageFromDockerfile(IMAGE, false)
          .withFileFromPath("Dockerfile", CHECKOUT.resolve("distribution/container/Dockerfile"))
          .withFileFromPath(archive.getFileName().toString(), archive)
          .withBuildArg("BASE", CleanDebian.IMAGE)
          .get();
      imageIsMade = true;
    }
  }

  @AfterEach
  void remove() {
    containers.forEach(GenericContainer::stop);
    if (scratch != null) {
      scratch.close();
    }
  }

  @Test
  void sidecar_ofTheManifest_servesAnotherContainerUntilItEnds() {
    GenericContainer<?> pmfs = startSidecar();
    GenericContainer<?> reader = startReader();
    awaitReads(reader, 20);
    assertThat(run(reader, "diff", "-r", "/source", "/data/dataset").exit()).isZero();
    assertThat(run(reader, "setpriv", "--reuid=1000", "--clear-groups", "cat", held()).exit())
        .as("another user")
        .isZero();
    assertThat(run(pmfs, command("readinessProbe")).exit()).isZero();
    assertThat(run(pmfs, command("livenessProbe")).exit()).isZero();

    String killed = daemon(pmfs);
    run(pmfs, "kill", "-KILL", killed).expect(0);
    awaitReads(reader, 20);
    assertThat(run(pmfs, command("readinessProbe")).exit()).isZero();
    assertThat(daemon(pmfs)).isNotEqualTo(killed);

    run(reader, "touch", "/tmp/stop").expect(0);
    Await.until("the reader's end", SOON, () -> isThere(reader, "ended"));
    assertThat(run(reader, "cat", "/tmp/held").out()).isEqualTo("0\n");
    List<String> preStop = strings(object(sidecar, "lifecycle", "preStop", "exec"), "command");
    assertThat(run(pmfs, preStop).exit())
        .as("done, or killed because its container has ended")
        .isIn(0, 137);
    Await.until("the sidecar's end", SOON, () -> !pmfs.isRunning());
    assertThat(exit(pmfs)).isZero();
    assertNothingIsMounted();
    assertThat(run(reader, "ls", "/data/dataset").out()).isEmpty();
  }

  @Test
  void stop_underAReader_leavesNoMountAndNoHangingRead() {
    GenericContainer<?> pmfs = startSidecar();
    GenericContainer<?> reader = startReader();
    awaitReads(reader, 5);

    long began = System.nanoTime();
    engine().stopContainerCmd(pmfs.getContainerId()).withTimeout(90).exec();
    assertThat(Duration.ofNanos(System.nanoTime() - began)).isLessThan(Duration.ofSeconds(40));

    assertThat(exit(pmfs)).as("after SIGTERM").isEqualTo(143);
    assertNothingIsMounted();
    Await.until("a failed read", SOON, () -> isThere(reader, "waits"));
    run(reader, "touch", "/tmp/stop").expect(0);
    Await.until("the reader's end", SOON, () -> isThere(reader, "ended"));
    assertThat(run(reader, "cat", "/tmp/held").out())
        .as("a file that was open")
        .contains("Transport endpoint is not connected");
  }

  @Test
  void kill_underAReader_failsReadsUntilTheNextSidecarMounts() {
    GenericContainer<?> pmfs = startSidecar();
    GenericContainer<?> reader = startReader();
    awaitReads(reader, 5);

    engine().killContainerCmd(pmfs.getContainerId()).exec();
    Await.until("a failed read", SOON, () -> isThere(reader, "waits"));
    assertThat(run(reader, "cat", "/tmp/error").out())
        .containsAnyOf("Transport endpoint is not connected", "Software caused connection abort");
    assertThat(Mounts.below(shared())).as("a stale mount").hasSize(1);

    GenericContainer<?> next = startSidecar();
    assertThat(logs(next)).contains("removed a stale mount whose daemon had died");
    assertThat(run(reader, "diff", "-r", "/source", "/data/dataset").exit()).isZero();
    assertThat(Mounts.below(shared())).hasSize(1);
  }

  /** What is missing is said in one line, and the status is that of a machine that cannot mount. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--cap-add SYS_ADMIN | --device /dev/fuse",
        "--cap-add SYS_ADMIN --volume /dev/fuse:/dev/fuse | --device /dev/fuse",
        "--device /dev/fuse | --cap-add SYS_ADMIN"
      })
  void mount_withoutWhatFuseNeeds_namesIt(String options, String remedy) {
    Command refused = once(options, "mount", "--foreground", "/opt", "/mnt");

    assertThat(refused.exit()).as("%s", refused).isEqualTo(5);
    assertThat(refused.errorLines()).hasSize(1).first().asString().contains(remedy);
  }

  @Test
  void mount_byAUser_servesThatUser() {
    Command done =
        byUser(
            "--cap-add SYS_ADMIN",
            "",
            " && diff -r /opt /tmp/mnt && pmfs status /tmp/mnt && pmfs umount /tmp/mnt");

    assertThat(done.exit()).as("%s", done).isZero();
  }

  @ParameterizedTest
  @CsvSource({"--cap-add SYS_ADMIN,--no-new-privs", "--cap-drop SYS_ADMIN,''"})
  void mount_byAUserWithoutSetUserId_namesIt(String options, String privileges) {
    Command refused = byUser(options, privileges, "");

    assertThat(refused.exit()).as("%s", refused).isEqualTo(5);
    assertThat(refused.err()).contains("must be set-user-id root");
  }

  /** Udev gives the device this mode; machines without it do not. */
  private static Command byUser(String options, String privileges, String then) {
    return once(
        "--device /dev/fuse --entrypoint sh " + options,
        "-c",
        "chmod 666 /dev/fuse && mkdir -m 777 /tmp/mnt && chown 1000 /tmp/mnt && exec setpriv"
            + " --reuid=1000 --regid=1000 --clear-groups "
            + privileges
            + " sh -c 'export HOME=/tmp; pmfs mount --tier ssd:/tmp/tier --keep-free 0 /opt"
            + " /tmp/mnt"
            + then
            + "'");
  }

  @Test
  void mount_withTooLittleMemory_saysSo() {
    Command killed =
        once(
            "--device /dev/fuse --cap-add SYS_ADMIN --memory 48m",
            "mount",
            "--foreground",
            "/opt",
            "/mnt");

    assertThat(killed.exit()).as("%s", killed).isEqualTo(137);
    assertThat(killed.err()).contains("allow it 1 GiB");
  }

  /** Starts a container as the manifest does; waits until the manifest would start the job. */
  private GenericContainer<?> startSidecar() {
    GenericContainer<?> pmfs =
        start(
            true,
            List.of(
                bind("source", "/source", BindPropagation.R_PRIVATE).withReadOnly(true),
                bind("cache", "/cache", BindPropagation.R_PRIVATE),
                bind("mounts", mountPath(sidecar), BindPropagation.R_SHARED)),
            strings(sidecar, "command"));
    List<String> probe = command("startupProbe");
    Await.until(
        () -> "no mount: " + logs(pmfs),
        SOON,
        () -> !pmfs.isRunning() || run(pmfs, probe).exit() == 0);
    assertThat(pmfs.isRunning()).as("%s", logs(pmfs)).isTrue();
    return pmfs;
  }

  /** A container without any privilege. */
  private GenericContainer<?> startReader() {
    return start(
        false,
        List.of(
            bind("source", "/source", BindPropagation.R_PRIVATE),
            bind("mounts", mountPath(train), BindPropagation.R_SLAVE)),
        List.of("sh", "-c", READ, "read", "/data/dataset"));
  }

  private GenericContainer<?> start(
      boolean mountsItself, List<Mount> mounts, List<String> command) {
    GenericContainer<?> container =
        new GenericContainer<>(DockerImageName.parse(IMAGE))
            .withImagePullPolicy(image -> false)
            .withNetworkMode("none")
            .withCreateContainerCmdModifier(
                (CreateContainerCmd create) -> {
                  if (mountsItself) {
                    Containers.permitFuse(create);
                  }
                  Containers.hostOf(create).withMounts(mounts);
                  create.withName(TestRun.newName()).withEntrypoint(command).withCmd(List.of());
                });
    containers.add(container);
    container.start();
    return container;
  }

  private Mount bind(String directory, String to, BindPropagation propagation) {
    return new Mount()
        .withType(MountType.BIND)
        .withSource(scratch.root().resolve(directory).toString())
        .withTarget(to)
        .withBindOptions(new BindOptions().withPropagation(propagation));
  }

  /** A container that runs to its end. */
  private static Command once(String options, String... arguments) {
    List<String> line =
        new ArrayList<>(
            List.of("timeout", "60", "docker", "run", "--rm", "--network=none", "--name"));
    line.add(TestRun.newName());
    line.addAll(Arrays.asList(options.split(" ", -1)));
    line.add(IMAGE);
    line.addAll(Arrays.asList(arguments));
    return Command.run(line.toArray(String[]::new));
  }

  private static Command run(GenericContainer<?> container, List<String> command) {
    return run(container, command.toArray(String[]::new));
  }

  private static Command run(GenericContainer<?> container, String... command) {
    return Containers.run(container, DEADLINE_SECONDS, command);
  }

  private static String daemon(GenericContainer<?> pmfs) {
    return run(pmfs, "pidof", "java").expect(0).out().strip();
  }

  private static void awaitReads(GenericContainer<?> reader, int count) {
    long goal = reads(reader) + count;
    Await.until(
        () -> "no more reads: " + run(reader, "cat", "/tmp/error"),
        SOON,
        () -> reads(reader) >= goal || isThere(reader, "waits"));
    assertThat(isThere(reader, "waits")).as("%s", run(reader, "cat", "/tmp/error")).isFalse();
  }

  private static long reads(GenericContainer<?> reader) {
    return run(reader, "cat", "/tmp/reads").out().lines().count();
  }

  private static boolean isThere(GenericContainer<?> reader, String file) {
    return run(reader, "test", "-e", "/tmp/" + file).exit() == 0;
  }

  private static DockerClient engine() {
    return DockerClientFactory.instance().client();
  }

  private static @Nullable Long exit(GenericContainer<?> container) {
    return engine()
        .inspectContainerCmd(container.getContainerId())
        .exec()
        .getState()
        .getExitCodeLong();
  }

  private static String logs(GenericContainer<?> container) {
    return container.getLogs();
  }

  private static String held() {
    return "/data/dataset/part-000/file-00001";
  }

  private Path shared() {
    return scratch.root().resolve("mounts");
  }

  private void assertNothingIsMounted() {
    assertThat(Mounts.below(shared())).isEmpty();
  }

  private List<String> command(String probe) {
    return strings(object(sidecar, probe, "exec"), "command");
  }

  private static String mountPath(JsonObject container) {
    for (JsonElement mount : container.getAsJsonArray("volumeMounts")) {
      if (mount.getAsJsonObject().get("name").getAsString().equals("mounts")) {
        return mount.getAsJsonObject().get("mountPath").getAsString();
      }
    }
    throw new AssertionError("no volume for mounts");
  }

  private static JsonObject object(JsonObject in, String... path) {
    JsonObject object = in;
    for (String name : path) {
      object = object.getAsJsonObject(name);
    }
    return object;
  }

  private static List<String> strings(JsonObject in, String list) {
    return in.getAsJsonArray(list).asList().stream().map(JsonElement::getAsString).toList();
  }
}
