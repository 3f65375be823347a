package io.pmfs.fuse.jnr;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.BridgeProvider;
import org.junit.jupiter.api.Test;

final class JnrBridgeProviderTest {
  /** Nothing but its name leads there. */
  @Test
  void of_jnr_findsThisModule() throws Exception {
    assertThat(BridgeProvider.of("jnr")).isInstanceOf(JnrBridgeProvider.class);
  }
}
