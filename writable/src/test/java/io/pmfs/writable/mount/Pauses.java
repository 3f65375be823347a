package io.pmfs.writable.mount;

import io.pmfs.writable.OutputCalls;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets threads stop for a moment before and after some calls, as on a busy machine, so that other
 * threads' calls come between.
 */
final class Pauses {
  private static final int ONE_IN = 8;
  private static final int MOST_NANOS = 2_000_000;

  private Pauses() {}

  static OutputCalls around(OutputCalls calls) {
    return (OutputCalls)
        Proxy.newProxyInstance(
            OutputCalls.class.getClassLoader(),
            new Class<?>[] {OutputCalls.class},
            (proxy, method, arguments) -> {
              pause();
              try {
                return method.invoke(calls, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              } finally {
                pause();
              }
            });
  }

  private static void pause() {
    ThreadLocalRandom random = ThreadLocalRandom.current();
    if (random.nextInt(ONE_IN) == 0) {
      LockSupport.parkNanos(random.nextInt(MOST_NANOS));
    }
  }
}
