package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** That a {@link NodeView} shows what tests of clusters rely on, and that at once. */
@OnRequest("cases")
final class SourceViewIT {
  private static final byte[] THEN = bytes(1, 300_000);
  private static final byte[] NOW = bytes(2, 200_000);

  private ClusterBed bed;
  private List<NodeView> views = List.of();
  private Path file;

  @BeforeEach
  void make() throws IOException {
    Nodes.require();
    Machine.requireFuse();
    bed = new ClusterBed(2, 1000);
    file = bed.dataset().root().resolve("file");
    Files.write(file, THEN);
    views = bed.viewByNode();
  }

  @AfterEach
  void remove() {
    views.forEach(NodeView::close);
    if (bed != null) {
      bed.close();
    }
  }

  private static byte[] bytes(int seed, int count) {
    byte[] bytes = new byte[count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  private String on(int node, String command) {
    return bed.node(node).run("sh", "-c", command, "sh", file.toString()).out();
  }

  private String attributes(int node) {
    return on(node, "stat -c '%i %s %y %z' \"$1\"");
  }

  private byte[] content(int node) {
    return on(node, "cat \"$1\"").getBytes(ISO_8859_1);
  }

  @Test
  void view_toldNothing_isTheDirectory() {
    String tree =
        "cd \"$(dirname \"$1\")\" && find . -printf '%P %y %i %m %s %T@ %C@ %l\\n' | sort";
    String real = Command.run("sh", "-c", tree, "sh", file.toString()).expect(0).out();
    assertThat(on(0, tree)).isEqualTo(real).contains("caf");
    assertThat(on(1, tree)).isEqualTo(real);
  }

  @Test
  void lag_ofEachKind_isSeenOnItsNodeOnlyAndUntilItCatchesUp() throws IOException {
    for (Lag lag : Lag.values()) {
      Files.write(file, THEN);
      Posix.utimens(file.toString(), 1_000_000_000, 0);
      String then = attributes(1);
      views.get(0).lag(lag, "file");
      assertThat(attributes(0)).isEqualTo(then);
      Files.write(file, NOW);
      String now = attributes(1);
      assertThat(now).isNotEqualTo(then);
      assertThat(content(1)).isEqualTo(NOW);

      assertThat(attributes(0)).isEqualTo(lag == Lag.CONTENT ? now : then);
      assertThat(content(0))
          .isEqualTo(
              switch (lag) {
                case EVERYTHING -> THEN;
                case ATTRIBUTES, ATTRIBUTES_UNTIL_READ -> NOW;
                case CONTENT -> Arrays.copyOf(THEN, NOW.length);
              });
      if (lag == Lag.ATTRIBUTES_UNTIL_READ) {
        assertThat(attributes(0)).isEqualTo(now);
      }
      views.get(0).catchUp();
      assertThat(attributes(0)).isEqualTo(now);
      assertThat(content(0)).isEqualTo(NOW);
    }
  }

  @Test
  void counts_andRate_areOfTheNode() {
    views.get(0).limit(600_000);
    long began = System.nanoTime();
    content(0);
    assertThat(Duration.ofNanos(System.nanoTime() - began).toMillis()).isGreaterThan(450);
    NodeView.Counts counts = views.get(0).counts("file");
    assertThat(counts.opens()).isEqualTo(1);
    assertThat(counts.bytes()).isEqualTo(THEN.length);
    assertThat(counts.reads()).isCloseTo(4, within(2L));
    assertThat(counts.stats()).isPositive();
    assertThat(views.get(1).counts("file")).isEqualTo(NodeView.Counts.NOTHING);
  }

  @Test
  void fault_ofOneOperation_leavesOthersAndEndsAtOnce() throws Exception {
    views.get(0).fail(SourceView.Operation.READ, "file");
    assertThat(on(0, "cat \"$1\" 2>&1 >/dev/null")).contains("Input/output error");
    assertThat(attributes(0)).isEqualTo(attributes(1));
    views.get(0).mend();
    assertThat(content(0)).isEqualTo(THEN);

    views.get(0).hang(SourceView.Operation.OPEN, "*");
    Process reader = bed.node(0).start(ProcessBuilder.Redirect.DISCARD, "cat", file.toString());
    assertThat(attributes(0)).isEqualTo(attributes(1));
    assertThat(reader.isAlive()).isTrue();
    views.get(0).mend();
    assertThat(reader.waitFor()).isZero();
  }

  @Test
  void change_throughAView_reachesTheDirectory() throws IOException {
    String script =
        "cd \"$(dirname \"$1\")\" && mkdir made && echo text >made/new && mv made/new made/moved"
            + " && chmod 640 made/moved && touch -d @1000000000 made/moved && ln -s moved made/link"
            + " && rm file && truncate -s 3 made/moved && setfattr -n user.x -v y made/moved; echo $?";
    assertThat(on(0, script)).isEqualTo("0\n");
    assertThat(file).doesNotExist();
    Path moved = file.resolveSibling("made/moved");
    assertThat(Files.readString(moved)).isEqualTo("tex");
    assertThat(Posix.stat(moved.toString()).permissions()).isEqualTo(0640);
    assertThat(Files.readSymbolicLink(file.resolveSibling("made/link"))).hasToString("moved");
    Files.writeString(moved, "more", StandardOpenOption.APPEND);
    assertThat(on(1, "cat \"$(dirname \"$1\")/made/link\"")).isEqualTo("texmore");
  }
}
