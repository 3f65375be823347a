package io.pmfs.it;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** An account of its own, with a group of its own beside the primary one; close removes both. */
final class Account implements AutoCloseable {
  private static final String NAME = "pmfs-as-" + ProcessHandle.current().pid();
  private static final String GROUP = NAME + "-g";

  private final int uid;
  private final int gid;
  private final int otherGroup;
  private @Nullable DeviceForAll device;

  Account(String home) {
    // Those of this name are what a killed run left.
    removeNames();
    try {
      Command.run("groupadd", GROUP).expect(0);
      Command.run("useradd", "--no-create-home", "--home-dir", home, "--groups", GROUP, NAME)
          .expect(0);
      uid = number("id", "-u", NAME);
      gid = number("id", "-g", NAME);
      otherGroup = number("sh", "-c", "getent group " + GROUP + " | cut -d: -f3");
    } catch (AssertionError e) {
      removeNames();
      throw e;
    }
  }

  private static void removeNames() {
    Command.run("userdel", "--force", NAME);
    Command.run("groupdel", GROUP);
  }

  private static int number(String... line) {
    return Integer.parseInt(Command.run(line).expect(0).out().strip());
  }

  /** Until close, all users may open /dev/fuse. */
  void openFuse() {
    if (device == null) {
      device = new DeviceForAll();
    }
  }

  String name() {
    return NAME;
  }

  int uid() {
    return uid;
  }

  int gid() {
    return gid;
  }

  /** The group that the account is in besides its own. */
  int otherGroup() {
    return otherGroup;
  }

  Command run(String... line) {
    return run(Map.of(), line);
  }

  Command run(Map<String, String> environment, String... line) {
    List<String> all = new ArrayList<>(become());
    all.addAll(List.of(line));
    return Command.run(environment, Command.DEADLINE, all);
  }

  /** What runs a command as the user with no other group than the primary one. */
  List<String> prefix() {
    return OtherUser.prefix(Integer.toString(uid), Integer.toString(gid));
  }

  private List<String> become() {
    return List.of("setpriv", "--reuid=" + uid, "--regid=" + gid, "--init-groups");
  }

  /** Starts a process of the user's that has a file open. */
  Process hold(Path file) throws IOException {
    return start("sh", "-c", "exec sleep 300 <\"$0\"", file.toString());
  }

  /** Starts a process of the user's, whose output nobody reads. */
  Process start(String... line) throws IOException {
    List<String> all = new ArrayList<>(become());
    all.addAll(List.of(line));
    return Command.builder(Map.of(), all)
        .redirectOutput(Redirect.DISCARD)
        .redirectError(Redirect.DISCARD)
        .start();
  }

  /** Zombies are the business of whoever runs as process 1 here. */
  void awaitNoProcess() {
    Await.until(
        () -> "no process of the user: " + processes(),
        Duration.ofSeconds(30),
        () -> processes().lines().allMatch(line -> line.contains("<defunct>")));
  }

  String processes() {
    return Command.run("ps", "-u", NAME, "-o", "pid=,stat=,args=").out();
  }

  void own(String path) {
    Command.run("chown", "-h", uid + ":" + gid, path).expect(0);
  }

  @Override
  public void close() {
    if (device != null) {
      device.close();
      device = null;
    }
    // A supervisor that ends still removes its session file, as the user.
    awaitNoProcess();
    Command.run("userdel", "--force", NAME).expect(0);
    Command.run("groupdel", GROUP).expect(0);
  }
}
