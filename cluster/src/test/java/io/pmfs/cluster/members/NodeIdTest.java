package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class NodeIdTest {
  @TempDir private Path state;

  @Test
  void id_ofTheSameHost_isTheSame() {
    UUID id = NodeId.of(state, "node1");
    assertThat(NodeId.of(state, "node1")).isEqualTo(id);
    assertThat(NodeId.of(state, "node2")).isNotEqualTo(id);
  }

  /** As while its disk fails for a moment. */
  @Test
  void id_thatCannotBeRead_isNotReplaced() throws Exception {
    Path file = state.resolve("node-id");
    Files.createSymbolicLink(file, file);
    NodeId.of(state, "node1");
    assertThat(Files.isSymbolicLink(file)).isTrue();
  }
}
