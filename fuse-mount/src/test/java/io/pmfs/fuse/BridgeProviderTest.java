package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.mounting.MountException;
import org.junit.jupiter.api.Test;

final class BridgeProviderTest {
  @Test
  void of_bridgeThatIsNotInstalled_saysWhatToDo() {
    assertThatThrownBy(() -> BridgeProvider.of("other"))
        .isInstanceOf(MountException.class)
        .hasMessage("--bridge other: not part of this installation; leave out --bridge");
  }
}
