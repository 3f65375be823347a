package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Three nodes read the same large files at the same time, while a fourth member says what it likes
 * about their blocks.
 */
@OnRequest("cluster")
@Tag("alone") // says how long the slowest read took
final class LyingAboutBlocksIT {
  /** A reader waits 4 s for all peers together. */
  private static final Duration STALL = Duration.ofSeconds(8);

  private ClusterBed bed;

  @BeforeEach
  void make() {
    Machine.requireFuse();
    Nodes.require();
    bed = new ClusterBed(4, Dataset.sizes(12, 20 << 20));
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  /** It owns some of the files, and seems to read the others. */
  @ParameterizedTest
  @EnumSource(
      value = HostileMember.Mode.class,
      mode = EnumSource.Mode.MATCH_ALL,
      names = ".*_BLOCKS")
  void read_byAllOthers_isRightAndWaitsForNothingLong(HostileMember.Mode mode) throws Exception {
    List<Node> honest = bed.nodes().subList(1, 4);
    honest.forEach(node -> bed.mount(node));
    bed.awaitMembers(3);
    try (HostileProcess member = new HostileProcess(bed, bed.node(0), honest.get(0))) {
      bed.awaitMembers(4);
      member.become(mode);
      AtomicLong longest = new AtomicLong();
      bed.onAll(
          node -> {
            for (Dataset.Item item : bed.dataset().items()) {
              longest.accumulateAndGet(longestRead(node, item), Math::max);
            }
          });
      System.out.printf("%s: longest read %d ms%n", mode, longest.get() / 1_000_000);
      assertThat(member.become(HostileMember.Mode.HONEST)).as("lies").isPositive();
      assertThat(Duration.ofNanos(longest.get())).isLessThan(STALL);
      assertThat(bed.sum("reads.errors")).isZero();
      assertThat(honest.stream().map(LyingAboutBlocksIT::log).collect(Collectors.joining()))
          .as("who it was, and what it did")
          .containsPattern("hostile \\([^)]*\\) " + accusation(mode));
    }
  }

  /** What the log says about a member that does so. */
  private static String accusation(HostileMember.Mode mode) {
    return switch (mode) {
      case CLAIMED_BLOCKS -> "claims blocks of large files and refuses them";
      case OFFERED_BLOCKS, RANDOM_BLOCKS -> "claims or offers blocks that .* does not have";
      case NO_BLOCKS -> "is not asked for a while: .* is silent";
      case TRICKLING_BLOCKS, WAITING_BLOCKS -> "is not asked for a while: .*";
      default -> throw new IllegalArgumentException(mode.toString());
    };
  }

  private static String log(Node node) {
    try {
      return Files.readString(Path.of(node.mounted().status().text("logFile")));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Compares every byte; in nanoseconds. */
  private static long longestRead(Node node, Dataset.Item item) {
    ByteBuffer expected = ByteBuffer.wrap(item.content());
    ByteBuffer piece = ByteBuffer.allocateDirect(128 << 10);
    long longest = 0;
    try (FileChannel file = FileChannel.open(node.mounted().mountpoint().resolve(item.name()))) {
      while (true) {
        long since = System.nanoTime();
        int count = file.read(piece.clear());
        longest = Math.max(longest, System.nanoTime() - since);
        if (count < 0) {
          break;
        }
        assertThat(expected.slice(expected.position(), count).equals(piece.flip()))
            .as("%s from %d on", item.name(), expected.position())
            .isTrue();
        expected.position(expected.position() + count);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    assertThat(expected.hasRemaining()).as(item.name()).isFalse();
    return longest;
  }
}
