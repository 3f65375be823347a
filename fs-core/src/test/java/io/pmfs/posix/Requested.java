package io.pmfs.posix;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

/** The kinds of tests that this run includes; see {@link OnRequest}. */
public final class Requested {
  private Requested() {}

  public static boolean is(String kind) {
    return "all".equals(System.getProperty("pmfs." + kind));
  }

  /** As many as the short run has, or all of them on request. */
  public static int count(String kind, int all, int inEveryRun) {
    return is(kind) ? all : inEveryRun;
  }

  /** Leaves one case of a test out of the short run. */
  public static void assume(String kind, boolean isInEveryRun, String what) {
    assumeTrue(isInEveryRun || is(kind), reason(kind, what));
  }

  /** scripts/TestSummary.java knows by the property what was left out on purpose. */
  static String reason(String kind, String what) {
    return (what.isEmpty() ? "" : what + "; ") + "-Dpmfs." + kind + "=all runs it";
  }
}
