package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.fuse.KernelSession.Answer;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** LSEEK: data and holes. */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class KernelSeekTest {
  private static final int SPARSE_SIZE = 1 << 20;
  private static final int DATA_AT = 512 * 1024;

  private KernelFixture fixture;
  private KernelSession session;

  @BeforeAll
  void open(@TempDir Path directory) throws Exception {
    Path source = Files.createDirectories(directory.resolve("source"));
    try (RandomAccessFile sparse = new RandomAccessFile(source.resolve("sparse").toFile(), "rw")) {
      sparse.setLength(SPARSE_SIZE);
      sparse.seek(DATA_AT);
      sparse.write(1);
    }
    fixture = new KernelFixture(directory);
    session = fixture.session();
  }

  @AfterAll
  void close() {
    session.close();
    fixture.close();
  }

  private Answer seek(String name, long offset, int whence) throws Exception {
    return session.ask(Opcode.LSEEK, fixture.inode(name), KernelMessages.lseek(offset, whence));
  }

  private long found(String name, long offset, int whence) throws Exception {
    Answer answer = seek(name, offset, whence);
    assertThat(answer.error()).isZero();
    assertThat(answer.body().capacity()).isEqualTo(8);
    return answer.body().getLong(0);
  }

  @Test
  void seek_inASparseFile_findsWhatTheSourceFinds() throws Exception {
    long data = found("sparse", 0, Posix.SEEK_DATA);
    assumeTrue(data > 0, "the file system has no holes");
    assertThat(data).isLessThanOrEqualTo(DATA_AT);
    assertThat(found("sparse", 0, Posix.SEEK_HOLE)).isZero();
    assertThat(found("sparse", DATA_AT, Posix.SEEK_DATA)).isEqualTo(DATA_AT);
    assertThat(found("sparse", DATA_AT, Posix.SEEK_HOLE)).isBetween(DATA_AT + 1L, SPARSE_SIZE - 1L);
    assertThat(seek("sparse", SPARSE_SIZE - 1, Posix.SEEK_DATA).errno()).isEqualTo(Errno.ENXIO);
  }

  @Test
  void seek_inAFileWithAllItsBlocks_asksTheSourceNothing() throws Exception {
    int size = KernelFixture.LARGE_SIZE;
    long number = fixture.inode("large");
    long before = fixture.store.operations().total();
    assertThat(fixture.inode("large")).isEqualTo(number);
    assertThat(found("large", 0, Posix.SEEK_DATA)).isZero();
    assertThat(found("large", size - 1, Posix.SEEK_DATA)).isEqualTo(size - 1);
    assertThat(found("large", 0, Posix.SEEK_HOLE)).isEqualTo(size);
    assertThat(found("large", size - 1, Posix.SEEK_HOLE)).isEqualTo(size);
    assertThat(fixture.store.operations().total()).isEqualTo(before);
  }

  @ParameterizedTest
  @ValueSource(ints = {Posix.SEEK_DATA, Posix.SEEK_HOLE})
  void seek_atOrPastTheEnd_isEnxio(int whence) throws Exception {
    for (long past : new long[] {0, 1, 4096, Long.MAX_VALUE - SPARSE_SIZE}) {
      assertThat(seek("sparse", SPARSE_SIZE + past, whence).errno()).isEqualTo(Errno.ENXIO);
      assertThat(seek("small", KernelFixture.SMALL_SIZE + past, whence).errno())
          .isEqualTo(Errno.ENXIO);
      assertThat(seek("empty", past, whence).errno()).isEqualTo(Errno.ENXIO);
    }
    assertThat(seek("small", -1, whence).errno()).isEqualTo(Errno.ENXIO);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 5, -1, Integer.MAX_VALUE})
  void seek_forAnythingElse_isInvalid(int whence) throws Exception {
    assertThat(seek("small", 0, whence).errno()).isEqualTo(Errno.EINVAL);
  }

  @ParameterizedTest
  @CsvSource({"directory", "link", "fifo"})
  void seek_inWhatIsNoFile_isInvalid(String name) throws Exception {
    assertThat(seek(name, 0, Posix.SEEK_DATA).errno()).isEqualTo(Errno.EINVAL);
  }
}
