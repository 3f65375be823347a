package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.collect.ImmutableList;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A real shared file system, its servers and its client on this machine, on a network of their own.
 * Takes root. The servers can be killed and started again, the client unmounted and mounted again.
 */
final class SharedFileSystem implements AutoCloseable {
  private static final Duration START = Duration.ofMinutes(Machine.isEmulated() ? 5 : 1);

  /** What is served and how, and what of a file it can tell. */
  enum Kind {
    /** Gives a file another inode number after the kernel forgot it. */
    SSHFS("sshfs", "/usr/lib/openssh/sftp-server"),
    /** The same, by WebDAV, which has no modes, owners and links. */
    RCLONE("rclone"),
    GLUSTERFS("glusterfs", "glusterfsd"),
    MOOSEFS("mfsmount", "mfsmaster", "mfschunkserver"),
    /** NFS 3 with GNOME's client, which has no links and the time in whole seconds. */
    NFS_GANESHA("ganesha.nfsd", "rpcbind", "dbus-daemon", "gio", "/usr/libexec/gvfsd-fuse"),
    /** Server and client of the kernel, in the machine of {@code scripts/dax-vm}. */
    KERNEL_NFS4("rpc.nfsd", "rpc.mountd", "exportfs", "rpcbind", "mount.nfs"),
    KERNEL_NFS3("rpc.nfsd", "rpc.mountd", "exportfs", "rpcbind", "mount.nfs");

    private final ImmutableList<String> programs;

    Kind(String... programs) {
      this.programs = ImmutableList.copyOf(programs);
    }

    /** Those that this machine is for. */
    static Stream<Kind> here() {
      return Arrays.stream(values()).filter(kind -> kind.isOfTheKernel() == Machine.isEmulated());
    }

    boolean isOfTheKernel() {
      return this == KERNEL_NFS4 || this == KERNEL_NFS3;
    }

    boolean hasSymbolicLinks() {
      return this != RCLONE && this != NFS_GANESHA;
    }

    boolean hasHardLinks() {
      return this == GLUSTERFS || this == MOOSEFS || isOfTheKernel();
    }

    boolean hasExtendedAttributes() {
      return this == GLUSTERFS || this == MOOSEFS || this == KERNEL_NFS4;
    }
  }

  private static final String GLUSTER_SERVER =
      """
      volume disk
        type storage/posix
        option directory %1$s/served
      end-volume
      volume locks
        type features/locks
        subvolumes disk
      end-volume
      volume brick
        type performance/io-threads
        subvolumes locks
      end-volume
      volume server
        type protocol/server
        option transport-type tcp
        option transport.socket.listen-port 24100
        option transport.socket.bind-address %2$s
        option auth.addr.brick.allow *
        subvolumes brick
      end-volume
      """;

  private static final String GLUSTER_CLIENT =
      """
      volume brick
        type protocol/client
        option transport-type tcp
        option remote-host %2$s
        option remote-port 24100
        option remote-subvolume brick
        option ping-timeout 5
      end-volume
      """;

  private static final String MOOSE_MASTER =
      """
      WORKING_USER = root
      WORKING_GROUP = root
      DATA_PATH = %1$s/master
      EXPORTS_FILENAME = %1$s/exports
      TOPOLOGY_FILENAME = %1$s/none
      MATOML_LISTEN_HOST = %2$s
      MATOCS_LISTEN_HOST = %2$s
      MATOCL_LISTEN_HOST = %2$s
      """;

  private static final String MOOSE_CHUNKS =
      """
      WORKING_USER = root
      WORKING_GROUP = root
      DATA_PATH = %1$s/chunks
      HDD_CONF_FILENAME = %1$s/disks
      MASTER_HOST = %2$s
      CSSERV_LISTEN_HOST = %2$s
      BIND_HOST = %2$s
      HDD_LEAVE_SPACE_DEFAULT = 16MiB
      """;

  private static final String GANESHA =
      """
      NFS_CORE_PARAM {
        Bind_addr = %2$s;
        Protocols = 3;
        Enable_NLM = false;
        Enable_RQUOTA = false;
      }
      EXPORT {
        Export_Id = 1;
        Path = %1$s/served;
        Pseudo = /served;
        Access_Type = RW;
        Squash = No_Root_Squash;
        Protocols = 3;
        FSAL { Name = VFS; }
      }
      """;

  /** Its files in /run are its own, and all of it ends with unshare(1). */
  private static final String GANESHA_SERVER =
      """
      mount -t tmpfs tmpfs /run && mkdir /run/ganesha && rpcbind &&
        exec ganesha.nfsd -F -f %1$s/ganesha.conf -L %1$s/server.log -p /run/ganesha.pid
      """;

  /** A session of the desktop, which ends when the file system is unmounted. */
  private static final String GANESHA_CLIENT =
      """
      dbus-daemon --session --nofork --address=unix:path=%1$s/client.bus &
      export DBUS_SESSION_BUS_ADDRESS=unix:path=%1$s/client.bus
      export HOME=%1$s XDG_RUNTIME_DIR=%1$s GVFS_DISABLE_FUSE=1 GIO_USE_VOLUME_MONITOR=unix
      until gio mount nfs://%2$s%1$s/served; do sleep 0.2; done
      /usr/libexec/gvfsd-fuse %1$s/client -f -o allow_other
      kill $!
      """;

  /** A server of sftp for as long as the file "up" exists; the client starts it. */
  private static final String SFTP =
      """
      #!/bin/sh
      [ -e %1$s/up ] || exit 1
      echo $$ >%1$s/sftp.pid
      exec /usr/lib/openssh/sftp-server
      """;

  /** Programs that the kernel's server asks: they answer a moment after they have started. */
  private static final String KERNEL_SERVER =
      """
      [ -e /proc/fs/nfsd/threads ] || mount -t nfsd nfsd /proc/fs/nfsd
      exportfs -o rw,no_root_squash,fsid=0,no_subtree_check "$1:$2"
      mkdir -p /run/rpcbind
      pidof rpcbind || rpcbind -w
      for ((i = 0; i < 600; i++)); do rpcinfo -p "$1" >/dev/null 2>&1 && break; sleep 0.1; done
      pidof rpc.mountd || rpc.mountd
      for ((i = 0; i < 600; i++)); do rpcinfo -t "$1" mountd 3 >/dev/null 2>&1 && break; sleep 0.1; done
      """;

  private final Kind kind;
  private final @Nullable Nodes network;
  private final Scratch scratch;
  private final Path mountpoint;

  SharedFileSystem(Kind kind) {
    this.kind = kind;
    // The kernel's server has the guest for itself; what it serves must be no overlay.
    network = kind.isOfTheKernel() ? null : new Nodes(1);
    scratch =
        kind.isOfTheKernel() ? new Scratch(Path.of(System.getenv("PMEM_DIR"))) : new Scratch();
    mountpoint = scratch.directory("client");
    try {
      scratch.directory("served");
      prepare();
      startServers();
      mountClient();
    } catch (IOException e) {
      close();
      throw new UncheckedIOException(e);
    } catch (RuntimeException | AssertionError e) {
      close();
      throw e;
    }
  }

  /** What is not there is named as the reason why the test is skipped. */
  static void require(Kind kind) {
    if (!kind.isOfTheKernel()) {
      Nodes.require();
    }
    Machine.requireRoot();
    Machine.requireFuse();
    kind.programs.forEach(Machine::requireCommand);
  }

  /** What is served, as the client shows it. */
  Path root() {
    // The client of GNOME would mount others beside it.
    return kind == Kind.NFS_GANESHA
        ? mountpoint.resolve(
            "nfs:host=" + address() + ",prefix=" + path("served").replace("/", "%2F"))
        : mountpoint;
  }

  private String address() {
    return network == null ? "127.0.0.1" : network.get(0).address();
  }

  /** Runs a command on the network of servers and client. */
  private Command run(String... line) {
    return network == null ? Command.run(line) : network.get(0).run(line);
  }

  private void prepare() throws IOException {
    switch (kind) {
      case SSHFS -> {
        Files.setPosixFilePermissions(
            write("sftp", SFTP), PosixFilePermissions.fromString("rwxr-xr-x"));
      }
      case RCLONE -> write("rclone.conf", "");
      case GLUSTERFS -> {
        write("server.vol", GLUSTER_SERVER);
        write("client.vol", GLUSTER_CLIENT);
      }
      case MOOSEFS -> {
        write("master.cfg", MOOSE_MASTER);
        write("chunks.cfg", MOOSE_CHUNKS);
        write("exports", "* / rw,alldirs,admin,maproot=0:0\n");
        write("disks", "%1$s/served\n");
        scratch.directory("chunks");
        Files.writeString(scratch.directory("master").resolve("metadata.mfs"), "MFSM NEW");
      }
      case NFS_GANESHA -> {
        write("ganesha.conf", GANESHA);
        write("server.sh", GANESHA_SERVER);
        write("client.sh", GANESHA_CLIENT);
      }
      case KERNEL_NFS4, KERNEL_NFS3 ->
          run("bash", "-euc", KERNEL_SERVER, "-", address(), path("served")).expect(0);
    }
  }

  private Path write(String name, String text) throws IOException {
    return Files.writeString(
        scratch.root().resolve(name), text.formatted(scratch.root(), address()), UTF_8);
  }

  private String path(String name) {
    return scratch.root().resolve(name).toString();
  }

  void startServers() {
    switch (kind) {
      case SSHFS -> touch("up");
      case RCLONE ->
          run(
                  "sh",
                  "-c",
                  "setsid rclone --config \"$1\" serve webdav \"$2\" --addr \"$3:8080\""
                      + " --dir-cache-time 0s </dev/null >\"$4\" 2>&1 &",
                  "-",
                  path("rclone.conf"),
                  path("served"),
                  address(),
                  path("server.log"))
              .expect(0);
      case GLUSTERFS ->
          run("glusterfsd", "-f", path("server.vol"), "-l", path("server.log")).expect(0);
      case MOOSEFS -> {
        // Each start after a kill reads what was written since the last image of its metadata.
        run("mfsmaster", "-a", "-c", path("master.cfg"), "start").expect(0);
        run("mfschunkserver", "-c", path("chunks.cfg"), "start").expect(0);
      }
      case NFS_GANESHA ->
          start("unshare --mount --pid --fork --kill-child --mount-proc sh", "server.sh");
      // Its clients may claim for ten seconds what they had open.
      case KERNEL_NFS4, KERNEL_NFS3 ->
          run("rpc.nfsd", "--grace-time", "10", "--lease-time", "10", "4").expect(0);
    }
  }

  /** Starts a command that reads a file of this directory, in the background. */
  private void start(String command, String file) {
    String line = "setsid " + command + " \"$1\" </dev/null >>\"$1.log\" 2>&1 &";
    run("sh", "-c", line, "-", path(file)).expect(0);
  }

  private void touch(String name) {
    try {
      Files.write(scratch.root().resolve(name), new byte[0]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Kills what serves; the client stays. */
  void killServers() {
    switch (kind) {
      case SSHFS -> {
        Command.run("rm", "-f", path("up")).expect(0);
        Command.run("sh", "-c", "kill -9 $(cat \"$1\")", "-", path("sftp.pid"));
      }
      case RCLONE -> kill("rclone", "serve");
      case GLUSTERFS -> kill("glusterfsd", path("server.vol"));
      case MOOSEFS -> {
        kill("mfsmaster", path("master.cfg"));
        kill("mfschunkserver", path("chunks.cfg"));
      }
      case NFS_GANESHA -> kill("unshare", path("server.sh"));
      case KERNEL_NFS4, KERNEL_NFS3 -> run("rpc.nfsd", "0");
    }
  }

  /** Kills the processes of a program that name this directory and another word. */
  private void kill(String program, String word) {
    ProcessHandle.allProcesses()
        .filter(
            process -> {
              String line = line(process.pid());
              return line.contains(program)
                  && line.contains(word)
                  && line.contains(scratch.root().toString());
            })
        .forEach(ProcessHandle::destroyForcibly);
  }

  private static String line(long pid) {
    try {
      return new String(Files.readAllBytes(Path.of("/proc/" + pid + "/cmdline")), UTF_8)
          .replace('\0', ' ');
    } catch (IOException e) {
      return "";
    }
  }

  void mountClient() {
    switch (kind) {
      case SSHFS ->
          Command.run(
                  "sshfs",
                  "-o",
                  "ssh_command=" + path("sftp") + ",reconnect,allow_other",
                  "server:" + path("served"),
                  mountpoint.toString())
              .expect(0);
      case RCLONE ->
          Await.until(
              "mounted",
              START,
              () ->
                  run(
                              "rclone",
                              "--config",
                              path("rclone.conf"),
                              "mount",
                              ":webdav:",
                              "--webdav-url",
                              "http://" + address() + ":8080",
                              mountpoint.toString(),
                              "--allow-other",
                              "--dir-cache-time",
                              "1s",
                              "--daemon")
                          .exit()
                      == 0);
      case GLUSTERFS ->
          run(
                  "glusterfs",
                  "-f",
                  path("client.vol"),
                  "-l",
                  path("client.log"),
                  mountpoint.toString())
              .expect(0);
      case MOOSEFS -> run("mfsmount", "-H", address(), mountpoint.toString()).expect(0);
      case NFS_GANESHA -> {
        start("sh", "client.sh");
        Await.until("mounted", START, () -> Mounts.at(mountpoint));
      }
      case KERNEL_NFS4 -> mountNfs("vers=4.2", "/");
      case KERNEL_NFS3 -> mountNfs("vers=3,nolock", path("served"));
    }
    Await.until("the client answers", START, this::takesAFile);
  }

  private void mountNfs(String options, String served) {
    run("mount", "-t", "nfs", "-o", options, address() + ":" + served, mountpoint.toString())
        .expect(0);
  }

  /** Servers that have just started refuse for a moment. */
  private boolean takesAFile() {
    Path file = root().resolve(".there");
    return Command.run("timeout", "20", "sh", "-c", "echo 1 >\"$1\"", "-", file.toString()).exit()
        == 0;
  }

  void unmountClient() {
    Await.until(
        "the client is unmounted",
        START,
        () -> !Mounts.at(mountpoint) || Command.run("umount", mountpoint.toString()).exit() == 0);
  }

  @Override
  public void close() {
    if (Mounts.at(mountpoint)) {
      Command.run("umount", "-l", mountpoint.toString());
    }
    killServers();
    kill("", "client");
    scratch.close();
    if (network != null) {
      network.close();
    }
  }
}
