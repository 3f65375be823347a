package io.pmfs.writable.mount;

import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets threads stop before and after some calls, at random for a moment as on a busy machine, so
 * that other threads' calls come between.
 */
final class Pauses {
  private static final int ONE_IN = 8;
  private static final int MOST_NANOS = 2_000_000;

  private Pauses() {}

  /** What happens before and after a call, whose thread holds no lock of the source. */
  interface Pause {
    void at(String call) throws FsException;
  }

  static OutputCalls around(OutputCalls calls, Pause pause) {
    return (OutputCalls)
        Proxy.newProxyInstance(
            OutputCalls.class.getClassLoader(),
            new Class<?>[] {OutputCalls.class},
            (proxy, method, arguments) -> {
              pause.at(method.getName());
              try {
                return method.invoke(calls, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              } finally {
                pause.at(method.getName());
              }
            });
  }

  static void atRandom(String call) {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    if (random.nextInt(ONE_IN) == 0) {
      LockSupport.parkNanos(random.nextInt(MOST_NANOS));
    }
  }
}
