package io.pmfs.fuse;

import static io.pmfs.fs.PmfsFileSystem.ROOT;
import static io.pmfs.source.FaultyStore.Operation.LIST;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.tier.Hold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Promise: a program that waits for a source that does not answer can be killed. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class KilledProgramsTest {
  private static final long PROGRAM = 4711;
  private static final int REQUESTS = 20_000;

  @TempDir private Path directory;
  private KernelFixture fixture;
  private KernelOperations operations;

  @BeforeEach
  void makeOperations() throws Exception {
    fixture = new KernelFixture(directory);
    operations = new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
  }

  @AfterEach
  void closeFixture() {
    fixture.close();
  }

  private static KernelSession.Answer lookup(KernelSession session) {
    return session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name("small"));
  }

  /** What a test does while a look-up waits for the source. */
  private interface Meanwhile {
    void happens(KernelSession session) throws FsException;
  }

  /** The error of a look-up that waits for the source meanwhile, and of no other answer. */
  private @Nullable Errno errnoOfLookup(RequestHandler handler, Meanwhile meanwhile)
      throws Exception {
    Hold lists = fixture.faulty.on(LIST).hold();
    try (KernelSession session = new KernelSession(handler)) {
      CompletableFuture<KernelSession.Answer> lookup =
          CompletableFuture.supplyAsync(() -> lookup(session));
      lists.awaitReached();
      meanwhile.happens(session);
      lists.release();
      Errno errno = lookup.join().errno();
      assertThat(session.worksInVain()).isFalse();
      assertThat(lookup(session).errno()).isNull();
      assertThat(session.endings).hasValue(0);
      return errno;
    } finally {
      lists.release();
    }
  }

  @Test
  void request_ofAKilledProgram_endsWhileItIsWorkedOn() throws Exception {
    Errno errno =
        errnoOfLookup(
            operations,
            session -> {
              session.endIfKilled(thread -> thread != PROGRAM);
              assertThat(session.waiting(0)).isNotNull();
              session.endIfKilled(thread -> thread == PROGRAM);
              assertThat(session.waiting(0)).isNull();
              assertThat(session.worksInVain()).isTrue();
            });
    assertThat(errno).isEqualTo(Errno.EINTR);
  }

  /** The kernel has no answer yet: the worker's counts. */
  @Test
  void request_thatCannotBeEnded_isAnswered() throws Exception {
    Errno errno =
        errnoOfLookup(
            operations,
            session -> {
              session.refusals.set(1);
              assertThatThrownBy(() -> session.endIfKilled(thread -> true))
                  .hasMessageContaining("ENOMEM");
              assertThat(session.waiting(0)).isNotNull();
            });
    assertThat(errno).isNull();
  }

  /** Worker and killer race for each request, which gets one answer. */
  @Test
  void requests_thatAreEndedWhileTheyAreAnswered_haveOneAnswer() throws Exception {
    AtomicBoolean hasEnded = new AtomicBoolean();
    try (KernelSession session = new KernelSession(operations)) {
      lookup(session);
      Thread killer =
          new Thread(
              () -> {
                while (!hasEnded.get()) {
                  try {
                    session.endIfKilled(thread -> true);
                  } catch (FsException e) {
                    throw new AssertionError(e);
                  }
                }
              });
      killer.start();
      int answered = 0;
      for (int i = 0; i < REQUESTS; i++) {
        Errno errno = lookup(session).errno();
        assertThat(errno).isIn(null, Errno.EINTR);
        answered += errno == null ? 1 : 0;
      }
      hasEnded.set(true);
      killer.join();
      assertThat(answered).isBetween(1, REQUESTS - 1);
    }
  }

  @Test
  void isKilled_looksForSigkill() {
    assertThat(KilledPrograms.isKilled(List.of("Name:\tSigPnd", "SigPnd:\t0000000000000100")))
        .isTrue();
    assertThat(KilledPrograms.isKilled(List.of("SigPnd:\t8000000000004102"))).isTrue();
    assertThat(KilledPrograms.isKilled(List.of("SigPnd:\t0000000000004002"))).isFalse();
    assertThat(KilledPrograms.isKilled(List.of("ShdPnd:\t0000000000000100"))).isFalse();
    assertThat(KilledPrograms.isKilled(List.of())).isFalse();
  }

  /** The kernel cuts names after 15 bytes, and programs choose them. */
  @Test
  void isKilled_nameIsNotText_looksForSigkill() throws IOException {
    Path status = directory.resolve("status");
    Files.writeString(status, "Name:\t\u00e5\u0090\nSigPnd:\t0000000000000100\n", ISO_8859_1);
    assertThat(KilledPrograms.isKilled(status)).isTrue();
    assertThat(KilledPrograms.isKilled(directory.resolve("gone"))).isFalse();
  }
}
