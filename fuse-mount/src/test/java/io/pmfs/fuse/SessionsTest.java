package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Sessions over a bridge that serves only one mount point; SharedMountByUserIT covers others. */
final class SessionsTest {
  private final One first = new One();
  private final Sessions sessions = new Sessions(first);

  private static final class One implements Bridge {
    private boolean isMounted;
    private boolean isLazy;

    @Override
    public String name() {
      return "one";
    }

    @Override
    public ReadMode readMode() {
      return ReadMode.PAGE_CACHE;
    }

    @Override
    public String readModeReason() {
      return "";
    }

    @Override
    public RequestLatencies latencies() {
      return new RequestLatencies();
    }

    @Override
    public void listen(RequestListener listener) {}

    @Override
    public void mount(Duration timeout) {
      isMounted = true;
    }

    @Override
    public void unmount(boolean lazy) {
      isLazy = lazy;
      isMounted = false;
    }

    @Override
    public String device() {
      return "0:40";
    }

    @Override
    public boolean awaitEnd(Duration timeout) {
      return !isMounted;
    }
  }

  @Test
  void join_ofABridgeThatServesOne_isUnavailable() {
    assertThatThrownBy(() -> sessions.join(Path.of("/mnt/b"), Duration.ofSeconds(1)))
        .isInstanceOfSatisfying(
            MountException.class,
            e -> assertThat(e.reason()).isEqualTo(MountException.Reason.UNAVAILABLE));
  }

  @Test
  void awaitEnd_ofOneOnly_isItsEnd() throws Exception {
    sessions.mount(Duration.ZERO);
    assertThat(sessions.devices()).containsExactly("0:40");
    assertThat(sessions.device()).isEqualTo("0:40");
    assertThat(sessions.awaitEnd(Duration.ZERO)).isFalse();
    sessions.unmount(false);
    assertThat(sessions.awaitEnd(Duration.ZERO)).isTrue();
  }

  @Test
  void detach_isLazy() throws Exception {
    sessions.mount(Duration.ZERO);
    sessions.detach();
    assertThat(first.isLazy).isTrue();
    assertThat(sessions.awaitEnd(Duration.ZERO)).isTrue();
  }
}
