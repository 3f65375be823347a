package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceOperations;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.copies.RemoteCopies;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two nodes of which the first hears lies about the names that the other owns, in mounts that other
 * users enter.
 */
final class LyingMemberTest {
  private static final int DIRECTORIES = 6;
  private static final int FILES = 10;
  private static final int EVERYTHING = 07777;

  @TempDir Path directory;
  private TestNodes nodes;

  /** What becomes of each entry and status that a peer gives. */
  private UnaryOperator<SourceEntry> lie = entry -> entry;

  @BeforeEach
  void make() {
    nodes = new TestNodes(directory, RemoteCopies.AUTO, 1, 1L << 30, this::lied);
    nodes.isOpenToOthers = true;
    for (int d = 0; d < DIRECTORIES; d++) {
      nodes.store.directory("d" + d);
      nodes.store.directory("d%d/below".formatted(d));
      for (int f = 0; f < FILES; f++) {
        nodes.store.file("d%d/f%d".formatted(d, f), 100L * d + f, 5_000 + f);
      }
    }
  }

  @AfterEach
  void close() {
    nodes.close();
  }

  private PeerClient lied(PeerClient honest) {
    boolean isFirst = ((TestNodes.Node) honest).member.instance() == 0;
    return isFirst ? new Lying(honest) : honest;
  }

  private TestNodes.Node meet() throws Exception {
    nodes.add();
    nodes.add();
    nodes.meet();
    return nodes.nodes.get(0);
  }

  private static SourceEntry open(SourceEntry entry) {
    Attributes a = entry.attributes();
    return withAttributes(
        entry, a.withMode(a.mode() | EVERYTHING).withOwner(a.uid() + 1, a.gid() + 1));
  }

  private static SourceEntry withAttributes(SourceEntry entry, Attributes attributes) {
    return new SourceEntry(entry.name(), entry.identity(), attributes);
  }

  /** Compares the attributes that the kernel would get for every name with the source's. */
  private void assertAttributesAreTheSources(TestNodes.Node node) throws FsException {
    for (FileName path : nodes.store.paths()) {
      Inode inode = node.fs.inode(node.number(path.toString()));
      SourceStatus there = nodes.store.expectedStatus(path);
      assertThat(inode.attributes()).as("%s", path).isEqualTo(there.attributes());
      assertThat(inode.identity()).as("%s", path).isEqualTo(there.identity());
    }
  }

  @Test
  void attributes_ofAMemberThatLies_areThoseOfTheOwnSource() throws Exception {
    lie = LyingMemberTest::open;
    assertAttributesAreTheSources(meet());
  }

  @Test
  void attributes_afterARestart_areThoseOfTheOwnSource() throws Exception {
    assertAttributesAreTheSources(meet());
    lie = LyingMemberTest::open;
    nodes.restart();
    nodes.meet();
    assertAttributesAreTheSources(nodes.nodes.get(0));
  }

  /** What a listing shows at once is what the kernel does not ask for again. */
  @Test
  void verifiedInode_beforeALookup_isNoneOrTheSources() throws Exception {
    lie = LyingMemberTest::open;
    TestNodes.Node node = meet();
    List<DirectoryEntry> entries = new ArrayList<>();
    for (int d = 0; d < DIRECTORIES; d++) {
      node.fs.list(node.number("d" + d), 0, entries::add);
    }
    int left = 0;
    for (DirectoryEntry entry : entries) {
      Inode shown = node.fs.verifiedInode(entry.inode());
      left += shown == null ? 1 : 0;
      assertThat(shown == null || (shown.attributes().mode() & EVERYTHING) != EVERYTHING).isTrue();
    }
    assertThat(left).as("the other node listed some").isPositive();
    for (DirectoryEntry entry : entries) {
      node.fs.inode(entry.inode());
      assertThat(node.fs.verifiedInode(entry.inode())).isNotNull();
    }
  }

  /** A file's permissions must not become those of another one by a claim that they are one. */
  @Test
  void hardLink_claimedByAMember_joinsNoFiles() throws Exception {
    nodes.store.file("d0/private", 1, 5_000);
    nodes.store.hardLink("d1/too", "d0/private");
    FileIdentity secret = nodes.store.expectedStatus(FileName.of("d0/private")).identity();
    lie =
        entry ->
            entry.name().toString().startsWith("f")
                ? new SourceEntry(entry.name(), secret, entry.attributes().withLinkCount(2))
                : entry;
    TestNodes.Node node = meet();
    long number = node.number("d0/private");
    node.fs.inode(number);
    for (int d = 0; d < DIRECTORIES; d++) {
      for (int f = 0; f < FILES; f++) {
        String path = "d%d/f%d".formatted(d, f);
        assertThat(node.number(path)).as(path).isNotEqualTo(number);
        assertThat(node.read(path)).isEqualTo(nodes.expected().get(path));
      }
    }
    assertAttributesAreTheSources(node);
    assertThat(node.read(number)).isEqualTo(nodes.expected().get("d0/private"));
  }

  @Test
  void directoryAndFile_claimedToBeTheOther_areNotEntered() throws Exception {
    lie =
        entry ->
            withAttributes(
                entry,
                entry.attributes().withMode(entry.attributes().mode() ^ 0140000).withLinkCount(1));
    TestNodes.Node node = meet();
    int refused = 0;
    for (FileName path : nodes.store.paths()) {
      try {
        Inode inode = node.fs.inode(node.number(path.toString()));
        assertThat(inode.attributes()).isEqualTo(nodes.store.expectedStatus(path).attributes());
      } catch (FsException e) {
        refused++;
      }
    }
    assertThat(refused).isPositive();
  }

  @Test
  void name_thatTheSourceDoesNotHave_isNotThere() throws Exception {
    lie =
        entry ->
            entry.name().toString().equals("f3")
                ? new SourceEntry(FileName.of("invented"), entry.identity(), entry.attributes())
                : entry;
    TestNodes.Node node = meet();
    int invented = 0;
    for (int d = 0; d < DIRECTORIES; d++) {
      long in = node.number("d" + d);
      DirectoryEntry entry = node.fs.findIfPresent(in, FileName.of("invented"));
      if (entry != null) {
        invented++;
        assertThatThrownBy(() -> node.fs.inode(entry.inode())).isInstanceOf(FsException.class);
      }
    }
    assertThat(invented).isPositive();
  }

  @Test
  void emptyListing_ofAMemberThatLies_isTheSources() throws Exception {
    lie = entry -> entry;
    isEverythingHidden = true;
    assertAttributesAreTheSources(meet());
  }

  private boolean isEverythingHidden;

  @Test
  void linksAndExtendedAttributes_ofAMemberThatLies_areTheSources() throws Exception {
    for (int d = 0; d < DIRECTORIES; d++) {
      nodes.store.symbolicLink("d%d/link".formatted(d), "f1");
    }
    TestNodes.Node node = meet();
    for (int d = 0; d < DIRECTORIES; d++) {
      long link = node.number("d%d/link".formatted(d));
      assertThat(node.fs.readSymbolicLink(link)).isEqualTo(FileName.of("f1"));
      assertThat(node.fs.extendedAttributes(node.number("d%d/f1".formatted(d)))).isEmpty();
    }
  }

  /** The price: each node asks for each name once a session, and for no content. */
  @Test
  void lookups_ofEachNode_askTheOwnSourceOnceForEachName() throws Exception {
    meet();
    long before = nodes.asked(SourceOperations::stats);
    TestNodes.Node node = nodes.nodes.get(0);
    for (int d = 0; d < DIRECTORIES; d++) {
      node.fs.list(node.number("d" + d), 0, entry -> true);
    }
    long listed = node.asked().stats();
    for (int round = 0; round < 3; round++) {
      assertAttributesAreTheSources(node);
    }
    long names = nodes.store.paths().size();
    assertThat(node.asked().stats() - listed).isLessThanOrEqualTo(names);
    for (TestNodes.Node each : nodes.nodes) {
      assertAttributesAreTheSources(each);
      assertThat(each.readAll()).hasSize(DIRECTORIES * FILES);
    }
    long files = (long) DIRECTORIES * FILES;
    assertThat(nodes.asked(SourceOperations::opens)).isEqualTo(files);
    // Each name on both nodes, each directory when it was listed, each file when it was read.
    assertThat(nodes.asked(SourceOperations::stats) - before)
        .isLessThanOrEqualTo(2 * names + 2 * (2L * DIRECTORIES + 1) + names + files);
  }

  /** Passes on what the other node says, spoiled. */
  private final class Lying implements PeerClient {
    private final PeerClient honest;

    Lying(PeerClient honest) {
      this.honest = honest;
    }

    @Override
    public void list(
        Member peer, FileName path, Consumer<List<SourceEntry>> batches, Patience patience)
        throws PeerException {
      honest.list(
          peer,
          path,
          entries -> {
            if (!isEverythingHidden) {
              batches.accept(entries.stream().map(lie).toList());
            }
          },
          patience);
    }

    @Override
    public SourceStatus status(Member peer, FileName path, Patience patience) throws PeerException {
      SourceStatus status = honest.status(peer, path, patience);
      List<FileName> names = Paths.names(path);
      FileName name = names.isEmpty() ? path : names.get(names.size() - 1);
      SourceEntry spoiled =
          lie.apply(new SourceEntry(name, status.identity(), status.attributes()));
      return new SourceStatus(spoiled.identity(), spoiled.attributes());
    }

    @Override
    public FileName readSymbolicLink(Member peer, FileName path, Patience patience) {
      return FileName.of("../../elsewhere");
    }

    @Override
    public Map<FileName, byte[]> extendedAttributes(Member peer, FileName path, Patience patience) {
      return Map.of(FileName.of("user.claimed"), "x".getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public Given fetch(
        Member peer,
        FileName path,
        SourceVersion expected,
        long offset,
        ByteBuffer destination,
        boolean onlyCopies,
        Patience patience)
        throws PeerException {
      return honest.fetch(peer, path, expected, offset, destination, onlyCopies, patience);
    }

    @Override
    public HeldBlocks blocks(
        Member peer,
        FileName path,
        SourceVersion expected,
        HeldBlocks.Wanted wanted,
        Patience patience)
        throws PeerException {
      return honest.blocks(peer, path, expected, wanted, patience);
    }

    @Override
    public void close() {}
  }
}
