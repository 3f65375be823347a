package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.handler.codec.http.DefaultHttpHeaders;
import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What a user gets to see on an honest node of which another member says that everybody may read
 * everything.
 */
final class LyingMemberIT {
  /** Prints each name with what decides about access, then each file that can be read. */
  private static final String LOOK =
      """
      cd "$1" || exit
      find . -printf '%P %y %m %U %G %l\\n' 2>/dev/null | LC_ALL=C sort
      ls -lR . >/dev/null 2>&1
      find . -type f 2>/dev/null | LC_ALL=C sort | while IFS= read -r file; do
        if cat "$file" >/dev/null 2>&1; then printf 'can read %s\\n' "$file"; fi
      done
      """;

  /** Closes two directories, and in each other one a file and a directory. */
  private static final String CLOSE =
      """
      cd "$1" && chmod 755 . && chmod 700 part-000 part-005 && for part in part-*; do
        mkdir $part/below && cp $part/file-*0 $part/below && chmod 711 $part/below
        chmod 600 $part/file-*1 $part/file-*2 && chmod 640 $part/file-*3
      done
      """;

  private ClusterBed bed;

  @BeforeEach
  void make() {
    Nodes.require();
    Machine.requireFuse();
    bed = new ClusterBed(2, Dataset.sizes(100, 5_000));
    Command.run("chmod", "755", bed.scratch().root().toString()).expect(0);
    Command.run("sh", "-c", CLOSE, "sh", bed.dataset().root().toString()).expect(0);
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private static String lookAsAnother(Path directory) {
    return OtherUser.run("sh", "-c", LOOK, "sh", directory.toString()).out();
  }

  @Test
  @OnRequest("cases")
  void user_ofAnHonestNode_getsWhatTheSourcePermits() throws Exception {
    assertGetsWhatTheSourcePermits("--read-mode=page-cache");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--read-mode=passthrough", "--bridge=jnr"})
  @OnRequest(value = "modes", what = "the same in another read mode or bridge")
  void user_ofAnHonestNodeThatServesInAnotherWay_getsWhatTheSourcePermits(String way)
      throws Exception {
    assertGetsWhatTheSourcePermits(way);
  }

  private void assertGetsWhatTheSourcePermits(String way) throws Exception {
    Node honest = bed.node(1);
    bed.mount(honest, "--allow-other", way);
    try (HostileProcess member = new HostileProcess(bed, bed.node(0), honest)) {
      bed.awaitMembers(2);
      member.become(HostileMember.Mode.OPEN_TO_ALL);
      String permitted = lookAsAnother(bed.dataset().root());
      assertThat(permitted).contains("can read").doesNotContain("can read ./part-000");

      assertThat(lookAsAnother(honest.mounted().mountpoint())).isEqualTo(permitted);
      // Copies are there now, and whatever else is remembered.
      bed.readAll(honest);
      bed.awaitStagingIdle();
      assertThat(lookAsAnother(honest.mounted().mountpoint())).isEqualTo(permitted);
      assertThat(member.become(HostileMember.Mode.HONEST)).as("lies").isPositive();
    }
  }

  /** Replaces a directory by a link to one outside, where a file has the same size and time. */
  private static final String SWAP =
      """
      cd "$1" && mkdir "$2" && cp -p part-001/file-00010 "$2" && file=$2/file-00010 &&
        size=$(stat -c %s "$file") && touch -r "$file" "$2.time" &&
        yes secret | head -c "$size" >"$file" && touch -r "$2.time" "$file" &&
        mv part-001 part-gone && ln -s "$2" part-001
      """;

  @Test
  @OnRequest("cluster")
  void peer_askedForAPathThroughALinkThatWasSwappedIn_getsNothing() throws IOException {
    Node node = bed.node(1);
    bed.mount(node, "--allow-other");
    Path mountpoint = node.mounted().mountpoint();
    Command.run("ls", "-l", mountpoint.resolve("part-001").toString()).expect(0);
    assertThat(ask(node, "data", "part-002/file-00020")).isNotEmpty();

    Path outside = bed.scratch().root().resolve("outside");
    Command.run("sh", "-c", SWAP, "sh", bed.dataset().root().toString(), outside.toString())
        .expect(0);
    for (String resource : List.of("data", "directory", "status", "link", "xattr")) {
      for (String path : List.of("part-001/file-00010", "part-001")) {
        assertThat(ask(node, resource, path))
            .as("%s of %s", resource, path)
            .doesNotContain("secret");
      }
    }
  }

  /** What a member gets that asks the node, in a request that it has signed. */
  private String ask(Node node, String resource, String path) throws IOException {
    Matcher server =
        Pattern.compile("answers peers at /(\\S+), instance ([0-9a-f]+)")
            .matcher(Files.readString(Path.of(node.mounted().status().text("logFile"))));
    assertThat(server.find()).isTrue();
    String target = "/v1/" + resource + "/" + path;
    HttpHeaders headers = new DefaultHttpHeaders();
    new RequestSignature(
            ClusterSecret.ofFile(bed.secret()).requestKey().getEncoded(),
            Long.parseUnsignedLong(server.group(2), 16),
            InstantSource.system())
        .sign("GET", target, headers);
    return node.run(
            "curl",
            "-sS",
            "-H",
            "Authorization: " + headers.get("Authorization"),
            "http://" + server.group(1) + target)
        .out();
  }
}
