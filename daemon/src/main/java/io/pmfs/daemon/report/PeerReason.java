package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.pmfs.cluster.PeerException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What a peer said went wrong, without the JSON around it. */
public final class PeerReason {
  /** How an answer that is an error ends in the message of a {@link PeerException}. */
  private static final Pattern ERROR = Pattern.compile("answered \\d+: \\{\"error\":(\".*\")}");

  private PeerReason() {}

  /** In its own words if it answered. */
  public static String of(PeerException failure) {
    String message = String.valueOf(failure.getMessage());
    Matcher error = ERROR.matcher(message);
    try {
      return error.find() ? new Gson().fromJson(error.group(1), String.class) : message;
    } catch (JsonSyntaxException e) {
      return message;
    }
  }
}
