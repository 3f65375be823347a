package io.pmfs.cli.status;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.requests.Profile;
import io.pmfs.daemon.requests.ProfileTable;
import io.pmfs.machine.ByteSize;
import java.util.ArrayList;
import java.util.List;

/** Shows a profile as tables for users, or as lines of JSON. */
final class ProfileDisplay implements AutoCloseable {
  private static final Gson GSON =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();

  private final Invocation invocation;
  private final boolean isJson;
  private final WatchScreen screen;
  private boolean hasShown;

  ProfileDisplay(Invocation invocation, boolean isJson) {
    this.invocation = invocation;
    this.isJson = isJson;
    this.screen = WatchScreen.of(invocation);
  }

  /** Shows an interval; returns whether the output is still open. */
  boolean show(List<String> head, Profile.Report report) {
    hasShown = true;
    if (!isJson) {
      return screen.show(block(head, report));
    }
    invocation.showJson(GSON.toJson(report));
    return !invocation.out().checkError();
  }

  /** Shows the final sums. */
  void last(List<String> head, Profile.Report report) {
    close();
    if (isJson) {
      invocation.showJson(GSON.toJson(report));
    } else {
      if (hasShown) {
        invocation.out().println();
      }
      block(head, report).forEach(invocation::show);
    }
    invocation.out().flush();
  }

  private static List<String> block(List<String> head, Profile.Report report) {
    List<String> lines = new ArrayList<>(head);
    lines.addAll(ProfileTable.of(report, ByteSize::format));
    return lines;
  }

  @Override
  public void close() {
    screen.close();
  }
}
