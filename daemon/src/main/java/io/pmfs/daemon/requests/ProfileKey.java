package io.pmfs.daemon.requests;

import java.util.Locale;

/** The property by which a profile sums requests. */
public enum ProfileKey {
  OPERATION,
  PATH,
  DIRECTORY,
  PID,
  UID;

  /** The key's name on the command line. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The key of a request. */
  String of(Call call) {
    return switch (this) {
      case OPERATION -> call.operation();
      case PATH -> call.target();
      case DIRECTORY -> directory(call);
      case PID -> number(call.pid());
      case UID -> number(call.uid());
    };
  }

  private static String directory(Call call) {
    String target = call.target();
    int slash = target.lastIndexOf('/');
    if (slash < 0 || call.operation().startsWith("readdir")) {
      return target;
    }
    return slash == 0 ? "/" : target.substring(0, slash);
  }

  private static String number(long number) {
    return number == LogLine.NONE ? "unknown" : Long.toString(number);
  }
}
