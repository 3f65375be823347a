package io.pmfs.cli.requests;

import java.util.Locale;

/** What a profile adds up requests by. */
public enum ProfileKey {
  OPERATION,
  PATH,
  DIRECTORY,
  PID,
  UID;

  /** How users write it. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** What a request counts to. */
  String of(LogLine.Request request) {
    return switch (this) {
      case OPERATION -> request.operation();
      case PATH -> request.target();
      case DIRECTORY -> directory(request);
      case PID -> number(request.pid());
      case UID -> number(request.uid());
    };
  }

  private static String directory(LogLine.Request request) {
    String target = request.target();
    int slash = target.lastIndexOf('/');
    if (slash < 0 || request.operation().startsWith("readdir")) {
      return target;
    }
    return slash == 0 ? "/" : target.substring(0, slash);
  }

  private static String number(long number) {
    return number == LogLine.NONE ? "unknown" : Long.toString(number);
  }
}
