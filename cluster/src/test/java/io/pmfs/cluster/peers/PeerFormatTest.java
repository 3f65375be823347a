package io.pmfs.cluster.peers;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import java.time.Instant;
import org.junit.jupiter.api.Test;

final class PeerFormatTest {
  @Test
  void entry_alsoOneBeyondDescription_arrivesAsItIs() {
    Instant time = Instant.parse("2026-11-26T18:00:00.5Z");
    Attributes attributes = new Attributes(0100644, 2, 1, 2, 0, 10, 8, time, time, time);
    for (SourceEntry sent :
        new SourceEntry[] {
          new SourceEntry(FileName.of("a"), new FileIdentity(0, 7), attributes),
          SourceEntry.unknown(FileName.of("b"))
        }) {
      ByteBuf bytes = Unpooled.buffer();
      PeerFormat.putEntry(bytes, sent);
      assertThat(PeerFormat.entry(bytes)).isEqualTo(sent);
    }
  }
}
