package io.pmfs.it;

import static io.pmfs.it.NodeCacheBed.ADA;
import static io.pmfs.it.NodeCacheBed.BOB;
import static io.pmfs.it.NodeCacheBed.EVE;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** {@code pmfs node-cache}, and mounts of several users. */
final class NodeCacheIT {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final int ROUNDS = Requested.count("large", 5, 2);

  /** One of the reasons for a refusal, in the service's protocol. */
  private static final long NOT_LISTED = 2;

  private NodeCacheBed bed;

  @BeforeEach
  void start() throws IOException {
    bed = new NodeCacheBed();
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private void assertReadRight(int user, Dataset dataset, Path mountpoint) {
    bed.by(user, "diff", "-r", dataset.root().toString(), mountpoint.toString()).expect(0);
  }

  private long sourceBytes(int user, Path mountpoint) {
    return bed.status(user, mountpoint).number("sourceOperations.bytes");
  }

  @Test
  void mounts_ofThreeUsers_shareCopiesAndNobodyReadsMore() throws IOException {
    bed.serve();
    Dataset dataset = bed.dataset("source", ADA, Dataset.sizes(30, 200_000));
    List<Path> ofAda = new ArrayList<>();
    for (String name : List.of("a", "b", "c", "d")) {
      ofAda.add(bed.mount(ADA, name, dataset));
    }
    List<Path> ofBob = List.of(bed.mount(BOB, "a", dataset), bed.mount(BOB, "b", dataset));

    for (Path mountpoint : ofAda) {
      assertReadRight(ADA, dataset, mountpoint);
      assertThat(sourceBytes(ADA, mountpoint)).isZero();
    }
    for (Path mountpoint : ofBob) {
      assertReadRight(BOB, dataset, mountpoint);
      assertThat(sourceBytes(BOB, mountpoint)).isZero();
    }
    assertThat(bed.report().number("copiedBytes")).isEqualTo(dataset.bytes());
    assertThat(bed.report().number("failed")).isZero();

    assertThat(bed.by(EVE, "cat", dataset.root().resolve("x").toString()).err())
        .contains("Permission denied");
    Command refused =
        bed.by(
            EVE,
            bed.launcher().toString(),
            "mount",
            "--node-cache",
            bed.socket().toString(),
            dataset.root().toString(),
            bed.pmfs().directory("nowhere").toString());
    assertThat(refused.exit()).isEqualTo(2);
    assertThat(refused.err()).contains("permission denied");
    for (int user : List.of(ADA, BOB, EVE)) {
      assertThat(bed.by(user, "ls", bed.copies().toString()).err()).contains("Permission denied");
    }
  }

  @Test
  @OnRequest("cases")
  void kill9_ofTheService_failsNoRead_andMountsUseTheNextOne() throws Exception {
    bed.serve();
    // More files than a mount keeps open: it asks again for most of them.
    Dataset many = Dataset.create(bed.pmfs().directory("many"), Dataset.sizes(1000, 10_000));
    try (MountedPmfs mount =
            bed.pmfs().mount(many.root(), "--node-cache", bed.socket().toString());
        Readers readers = new Readers(many, mount.mountpoint(), 4, List.of())) {
      for (int round = 0; round < ROUNDS; round++) {
        long before = readers.reads();
        readers.awaitMore(20);
        bed.kill();
        readers.awaitMore(20);
        bed.serve();
        Machine.dropCaches();
        Await.until(
            "the mount asks the next service",
            PATIENCE,
            () -> bed.report().number("answered") > 0 || readers.failures() > 0);
        readers.assertNoFailures();
        assertThat(readers.reads()).isGreaterThan(before);
      }
      // One that hangs fails no read either.
      bed.signal("STOP");
      readers.awaitMore(50);
      bed.signal("CONT");
      readers.awaitMore(50);
      readers.assertNoFailures();
    }
  }

  @Test
  @OnRequest("cases")
  void largeFile_openedAgain_isReadByTheKernel_alsoWithoutTheServiceAndTheDaemon()
      throws Exception {
    Machine.requirePassthrough();
    bed.serve();
    Dataset large = Dataset.create(bed.pmfs().directory("large"), 20_000_000);
    String name = large.items().get(0).name();
    byte[] content = large.items().get(0).content();
    try (MountedPmfs mount =
        bed.pmfs().mount(large.root(), "--node-cache", bed.socket().toString())) {
      large.assertEqualBelow(mount.mountpoint());
      Await.until(
          "the copy is whole and handed to the kernel",
          PATIENCE,
          () -> {
            Posix.readByte(mount.path(name));
            return mount.status().number("reads.opensLeftToKernel") > 0;
          });
    }
    Await.until("the mount has gone", PATIENCE, () -> openBytesOfRoot() == 0);
    try (MountedPmfs mount =
        bed.pmfs().mount(large.root(), "--node-cache", bed.socket().toString())) {
      try (FileChannel file = FileChannel.open(mount.mountpoint().resolve(name))) {
        assertThat(openBytesOfRoot()).isPositive();
        assertThat(contentOf(file)).isEqualTo(content);
        assertThat(mount.status().number("reads.opensLeftToKernel")).isOne();
      }
      assertThat(mount.status().number("sourceOperations.opens")).isOne();
      Await.until("the copy is given back", PATIENCE, () -> openBytesOfRoot() == 0);

      try (FileChannel file = FileChannel.open(mount.mountpoint().resolve(name))) {
        bed.kill();
        Machine.dropCaches();
        assertThat(contentOf(file)).isEqualTo(content);
        assertThat(mount.status().number("reads.requests")).isZero();
        long killed = mount.daemon();
        mount.killDaemon();
        mount.awaitSuccessor(killed);
        large.assertEqualBelow(mount.mountpoint());
        assertThat(contentOf(file)).isEqualTo(content);
        assertThat(mount.status().number("reads.requests")).isZero();
      }
      bed.serve();
      Await.until(
          "the next service's copy is handed to the kernel",
          PATIENCE,
          () -> {
            Dataset.assertEqualBelow(mount.mountpoint(), large.items().get(0));
            return mount.status().number("reads.opensLeftToKernel") > 0;
          });
    }
  }

  /** Whatever they say of their files, they have device numbers of their own. */
  @Test
  void fileSystemsOfUsers_areNeverTheListedOne() throws Exception {
    bed.serve();
    Dataset dataset = Dataset.create(bed.pmfs().directory("listed"), 5000);
    Path root = dataset.root();
    String name = dataset.items().get(0).name();
    Path listed = root.resolve(name);
    assertThat(refusal(listed)).isNotEqualTo(NOT_LISTED);

    Path other = bed.pmfs().directory("other");
    Command.run("mount", "-t", "tmpfs", "tmpfs", other.toString()).expect(0);
    Path work = bed.pmfs().directory("work");
    for (String layers :
        List.of(
            "lowerdir=" + other + ",upperdir=" + root + ",workdir=" + work + ",xino=off",
            "lowerdir=" + other + ",upperdir=" + root + ",workdir=" + work + ",xino=on",
            "lowerdir=" + root + ":" + other)) {
      Path overlay = bed.pmfs().directory("overlay");
      Command.run("mount", "-t", "overlay", "overlay", "-o", layers, overlay.toString()).expect(0);
      assertThat(refusal(overlay.resolve(name))).as(layers).isEqualTo(NOT_LISTED);
      Command.run("umount", overlay.toString()).expect(0);
    }
    try (FaultyDisk loop = FaultyDisk.create(bed.pmfs().scratch(), "loop", "16M")) {
      Path copy = Files.copy(listed, loop.directory().resolve("f"));
      assertThat(refusal(copy)).isEqualTo(NOT_LISTED);
    }
    try (OwnMount fuse = new OwnMount(bed.pmfs().scratch(), root)) {
      Path file = fuse.mountpoint().resolve(name);
      assertThat(Posix.stat(file.toString()).size()).isEqualTo(5000);
      assertThat(refusal(file)).isEqualTo(NOT_LISTED);
    }
  }

  /** Why the service does not copy a file that is passed to it, in its protocol; -1 if it does. */
  private long refusal(Path path) throws FsException {
    try (DescriptorSocket socket = DescriptorSocket.connect(bed.socket(), PATIENCE);
        PassedFile file = PassedFile.open(path)) {
      ByteBuffer question = ByteBuffer.allocate(32).putInt(0x504d4301).putInt(1).putLong(1);
      socket.send(question.array(), file.descriptor());
      DescriptorSocket.Message answer = Objects.requireNonNull(socket.receive());
      if (answer.file() != null) {
        answer.file().close();
      }
      boolean isRefused = answer.bytes().getInt(Integer.BYTES) == 18;
      return isRefused ? answer.bytes().getLong(3 * Long.BYTES) : -1;
    }
  }

  /** A tier that is full, the service killed and started again: --status, and no read fails. */
  @Test
  @OnRequest("cases")
  void status_showsFilesAndUsers_alsoAfterAKill() throws Exception {
    bed.serve();
    Dataset dataset = bed.dataset("source", ADA, Dataset.sizes(20, 10_000));
    Path ofAda = bed.mount(ADA, "a", dataset);
    assertReadRight(ADA, dataset, ofAda);
    bed.kill();
    bed.serve();

    String said = bed.pmfs().run("node-cache", "--status", bed.socket().toString()).out();
    assertThat(said).contains("copies   20,").containsPattern("files +20 of [0-9,]+");
    assertThat(said).containsPattern("user " + ADA + " +[^,]+, 20 files, open ");
    Path foreign = bed.pmfs().directory("foreign");
    Files.createFile(foreign.resolve("incoming"));
    Command refused =
        bed.pmfs()
            .run(
                "node-cache",
                "--socket",
                foreign.resolve("socket").toString(),
                "--tier",
                "ssd:" + foreign + ":1G",
                "--source-filesystem",
                foreign.toString());
    assertThat(refused.exit()).isEqualTo(2);
    assertThat(refused.err())
        .contains(foreign + " contains files but is not a cache")
        .hasLineCount(1);
  }

  private long openBytesOfRoot() {
    return bed.report().number("room.users.0.openBytes");
  }

  private static byte[] contentOf(FileChannel file) throws IOException {
    ByteBuffer content = ByteBuffer.allocate((int) file.size());
    while (content.hasRemaining() && file.read(content, content.position()) > 0) {}
    return content.array();
  }
}
