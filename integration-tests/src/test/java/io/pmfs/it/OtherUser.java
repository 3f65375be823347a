package io.pmfs.it;

import java.util.ArrayList;
import java.util.List;

/** Commands run as nobody, for which it takes root. */
final class OtherUser {
  private static final String NOBODY = "65534";

  private OtherUser() {}

  static List<String> prefix(String uid, String gid) {
    return List.of("setpriv", "--reuid=" + uid, "--regid=" + gid, "--clear-groups");
  }

  static Command run(String... line) {
    List<String> all = new ArrayList<>(prefix(NOBODY, NOBODY));
    all.addAll(List.of(line));
    return Command.run(all.toArray(String[]::new));
  }
}
