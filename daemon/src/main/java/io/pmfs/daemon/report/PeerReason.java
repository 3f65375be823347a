package io.pmfs.daemon.report;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.pmfs.cluster.peers.PeerException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The error message of a peer, without the JSON around it. */
public final class PeerReason {
  /** The end of a {@link PeerException}'s message for an error answer. */
  private static final Pattern ERROR = Pattern.compile("answered \\d+: \\{\"error\":(\".*\")}");

  private PeerReason() {}

  /** The peer's own message if it answered, else the exception's. */
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
