package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AttendanceTest {
  private static final Instant NOW = Instant.ofEpochSecond(1_000);
  private static final Member SELF = new Member(UUID.randomUUID(), 1, "a", "127.0.0.1", 1);
  private static final Member OTHER = new Member(UUID.randomUUID(), 1, "b", "127.0.0.2", 1);

  @TempDir Path state;
  private final Fixed membership = new Fixed();

  private static final class Fixed implements Membership {
    private volatile List<Member> present = List.of(SELF, OTHER);

    @Override
    public View view() {
      return new View(present);
    }

    @Override
    public void onChange(Consumer<View> listener) {}

    @Override
    public List<Member> farewells() {
      return List.of();
    }

    @Override
    public void sayGoodbye() {}

    @Override
    public void close() {}
  }

  /** It looks by itself only once. */
  private Attendance attendance(boolean isResumed) {
    return new Attendance(
        state,
        List.of(),
        "a",
        InetAddress.getLoopbackAddress(),
        isResumed,
        InstantSource.fixed(NOW.plusNanos(7_654)),
        Duration.ofDays(1));
  }

  /** The file is written by a thread. */
  private void awaitKept(String text) throws Exception {
    Path file = state.resolve(Attendance.FILE);
    Await.until(
        text + " is kept",
        () -> Files.exists(file) && Files.readString(file, UTF_8).contains(text));
  }

  @Test
  void roll_ofTheNextDaemonOfAMount_hasThoseThatTheFormerMissed() throws Exception {
    Roll missed = new Roll(2, List.of(new Roll.Absence("b", "127.0.0.2", NOW, true)));
    try (Attendance former = attendance(false)) {
      former.begin(membership);
      assertThat(former.roll()).isEqualTo(new Roll(2, List.of()));
      awaitKept("HERE");
      membership.present = List.of(SELF);
      assertThat(former.roll()).isEqualTo(missed);
      awaitKept("MISSING");
    }
    try (Attendance next = attendance(true)) {
      next.begin(membership);
      assertThat(next.roll()).isEqualTo(missed);
    }
    try (Attendance ofAnotherMount = attendance(false)) {
      ofAnotherMount.begin(membership);
      assertThat(ofAnotherMount.roll()).isEqualTo(new Roll(1, List.of()));
    }
  }

  @Test
  void roll_whenTheFileIsMalformed_beginsAnew() throws Exception {
    Files.writeString(state.resolve(Attendance.FILE), "nothing");
    try (Attendance next = attendance(true)) {
      next.begin(membership);
      assertThat(next.roll()).isEqualTo(new Roll(2, List.of()));
    }
  }
}
