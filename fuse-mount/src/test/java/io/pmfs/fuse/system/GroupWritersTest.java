package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Errno;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A file of root's group, all of whose members are trusted here. */
final class GroupWritersTest {
  private static final Path FILE = Path.of("/file");
  private static final int ROOT = 0;

  private static @Nullable String stranger(GroupWriters.AccessLists lists) {
    return new GroupWriters(user -> user == ROOT, name -> true, lists).stranger(FILE, ROOT);
  }

  @ParameterizedTest
  @EnumSource(
      value = Errno.class,
      names = {"ENODATA", "EOPNOTSUPP"})
  void stranger_fileWithoutAList_isOnlyOfTheGroup(Errno none) {
    assertThat(stranger((path, into) -> -none.number())).isNull();
  }

  @ParameterizedTest
  @EnumSource(
      value = Errno.class,
      names = {"EIO", "EACCES", "ERANGE", "ENOENT", "ESTALE"})
  void stranger_listThatCannotBeRead_isSomebody(Errno failure) {
    assertThat(stranger((path, into) -> -failure.number()))
        .isEqualTo("a user in its access-control list, which cannot be read (" + failure + "),");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 3, 4, 7})
  void stranger_listThatIsNone_isSomebody(int size) {
    assertThat(stranger((path, into) -> size)).startsWith("a user in its access-control list");
  }

  @Test
  void stranger_userWhomTheListLetsWrite_isNamed() {
    assertThat(stranger((path, into) -> list(into, 0x02, 6, 4711))).isEqualTo("user 4711");
    assertThat(stranger((path, into) -> list(into, 0x02, 4, 4711))).isNull();
  }

  /** A list with one entry. */
  private static long list(byte[] into, int tag, int permissions, int id) {
    ByteBuffer list = ByteBuffer.wrap(into).order(ByteOrder.LITTLE_ENDIAN);
    return list.putInt(2).putShort((short) tag).putShort((short) permissions).putInt(id).position();
  }
}
