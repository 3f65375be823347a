package io.pmfs.cli;

import io.pmfs.cli.bugreport.Piece;
import io.pmfs.cli.bugreport.Redaction;
import io.pmfs.cli.bugreport.Report;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs bugreport}: one archive to attach to a bug report. */
@Command(
    name = "bugreport",
    description = {
      "Creates an archive to attach to a bug report. It has versions, configuration, status,"
          + " threads, the ends of logs and facts about the kernel. Sends nothing, and reads no"
          + " file of a dataset.",
      "%nSecrets are removed; names of files, hosts and users are not, so check the archive before"
          + " you pass it on. The command also works without any mount and while daemons are dead"
          + " or hang: problems.txt lists what is missing. It takes at most 90 seconds and 50"
          + " MiB.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs bugreport",
      "  pmfs bugreport /mnt/dataset -o /tmp/report.tar.gz",
      "  tar -xzOf /tmp/report.tar.gz --wildcards '*/problems.txt'"
    })
final class BugreportCommand implements Callable<Integer> {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC);

  private static final String SUFFIX = ".tar.gz";

  private final Invocation invocation;

  @Parameters(
      arity = "0..*",
      paramLabel = "MOUNTPOINT",
      description =
          "A present or former mount point. Default: all mounts of this user, and for root also"
              + " those that root made for users.")
  private List<String> mountpoints = List.of();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description =
          "The archive, which must not exist yet (default: pmfs-bugreport-HOST-TIME.tar.gz in the"
              + " working directory).")
  private @Nullable String output;

  BugreportCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Instant now = invocation.clock().instant();
    String name = "pmfs-bugreport-" + surroundings.hostName() + "-" + TIME.format(now);
    Path file = surroundings.resolve(output == null ? name + SUFFIX : output);
    Redaction redaction = new Redaction();
    redaction.learn(surroundings.environment());
    Report report = new Report(name, now, redaction);
    BugreportPieces pieces = new BugreportPieces(surroundings, redaction, report::problem);
    write(file, report, pieces.list(mountpoints));
    invocation.say(
        "%s: %s, readable only by you; nothing was sent. It may contain names of files, hosts"
                .formatted(file, ByteSize.format(file.toFile().length()))
            + " and users: check it before you pass it on"
            + (report.problems() == 0
                ? ""
                : "; problems.txt lists in %d lines what is missing".formatted(report.problems())));
    for (Path place : pieces.unknown()) {
      invocation.warn(
          place
              + ": pmfs knows no mount there and has no log of one, so the report has nothing of it;"
              + " pmfs status lists the mounts");
    }
    return ExitStatus.DONE;
  }

  private void write(Path file, Report report, List<Piece> pieces) throws MountFailure {
    try (OutputStream out = create(place(file))) {
      AtomicBoolean whole = new AtomicBoolean();
      invocation.atShutdown().accept(() -> whole.get() || file.toFile().delete());
      try {
        report.write(out, pieces);
        whole.set(true);
      } finally {
        if (!whole.get()) {
          Files.deleteIfExists(file);
        }
      }
    } catch (FileAlreadyExistsException e) {
      throw new MountFailure(ExitStatus.USAGE, file + ": exists already; name another with -o", e);
    } catch (IOException e) {
      throw new MountFailure(
          e instanceof NotOwnException ? ExitStatus.USAGE : ExitStatus.FAILED,
          "%s: cannot be written: %s; name another with -o".formatted(file, Reason.of(e)),
          e);
    }
  }

  /** As root, resolves the directory in a way that no other user can redirect. */
  private Path place(Path file) throws IOException {
    return invocation.surroundings().isRoot() ? OwnPath.ofProcess().file(file) : file;
  }

  private static OutputStream create(Path file) throws IOException {
    return Channels.newOutputStream(
        FileChannel.open(
            file,
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))));
  }
}
