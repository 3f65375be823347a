package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Map;
import jnr.ffi.LastError;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Attributes that can be listed and not be read. */
final class ExtendedAttributesTest {
  private static final FileName WHAT = FileName.of("what");

  /** A C library in which a file has two attributes, and the first cannot be read. */
  private static LibC libc(FileName unreadable, Errno errno) {
    byte[] names = (unreadable + "\0user.b\0").getBytes(UTF_8);
    byte[] first = Posix.terminated(unreadable);
    return (LibC)
        Proxy.newProxyInstance(
            LibC.class.getClassLoader(),
            new Class<?>[] {LibC.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("listxattr")) {
                byte[] list = (byte[]) arguments[1];
                if (list.length >= names.length) {
                  System.arraycopy(names, 0, list, 0, names.length);
                }
                return (long) names.length;
              }
              if (Arrays.equals((byte[]) arguments[1], first)) {
                LastError.setLastError(Posix.RUNTIME, errno.number());
                return -1L;
              }
              return 0L;
            });
  }

  private static Map<FileName, byte[]> of(String unreadable, Errno errno, boolean isCopied)
      throws FsException {
    LibC libc = libc(FileName.of(unreadable), errno);
    return ExtendedAttributes.of(libc, 3, WHAT, isCopied);
  }

  @ParameterizedTest
  @EnumSource(names = {"EIO", "ESTALE", "ETIMEDOUT", "ENOMEM"})
  void attributeThatCannotBeReadNow_isAFailure(Errno errno) {
    for (boolean isCopied : new boolean[] {false, true}) {
      assertThatThrownBy(() -> of("user.a", errno, isCopied))
          .isInstanceOfSatisfying(FsException.class, e -> assertThat(e.errno()).isEqualTo(errno));
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"ENODATA", "EOPNOTSUPP", "E2BIG"})
  void attributeThatNobodyCanRead_isLeftOut(Errno errno) throws FsException {
    assertThat(of("user.a", errno, false)).containsOnlyKeys(FileName.of("user.b"));
    assertThat(of("user.a", errno, true)).containsOnlyKeys(FileName.of("user.b"));
  }

  @ParameterizedTest
  @EnumSource(names = {"EACCES", "EPERM"})
  void attributeThatMayNotBeRead_isShownToNobodyAndNotLost(Errno errno) throws FsException {
    assertThat(of("user.a", errno, false)).containsOnlyKeys(FileName.of("user.b"));
    assertThatThrownBy(() -> of("user.a", errno, true)).isInstanceOf(FsException.class);
    assertThatThrownBy(() -> of(PosixAcl.ACCESS.toString(), errno, false))
        .isInstanceOf(FsException.class);
  }
}
