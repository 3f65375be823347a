package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Every class that reaches a file by a name, and why nobody can lead it elsewhere: docs/decisions/
 * 0050. A class that is new here needs a place in the list, and so a reason.
 */
final class PathCallsTest {
  /** Below a directory that is open: no link is followed, whoever can write there. */
  private static final String BENEATH =
      """
      fuse.mounting.MountPoint fuse.system.Beneath fuse.system.ExtendedAttributes
      fuse.system.LinuxOutputCalls fuse.system.StrangersDirectory
      """;

  /** In directories of our own, checked from the root on; or files that are opened from there. */
  private static final String OWN =
      """
      cache.CacheService cache.CopyContent cache.CopyFiles cache.FoundCopies cache.SharedCopies
      cli.control.Peer cli.copies.NodeCacheCommand cli.mount.MountHolders
      cluster.members.Attendance cluster.members.ClusterSecret cluster.members.NodeId
      cluster.members.NodeList cluster.peers.PeerTls contents.CacheContents contents.CopySets
      contents.KnownPlaces contents.OutputDirectories daemon.KeptMount daemon.MountChecks
      daemon.PreviousMount daemon.control.ControlServer daemon.dataset.DatasetWiring
      daemon.dataset.MountTiers daemon.dataset.TransientCopies
      daemon.process.DaemonLog daemon.process.Supervision daemon.requests.AccessLogFile
      daemon.tasks.KeptTasks daemon.tasks.TaskFile daemon.tasks.TaskLists fuse.BackingLedger
      fuse.DeviceRegistry fuse.DirectWrites fuse.system.DescriptorSocket
      fuse.system.PassedFile fuse.system.PoolFile metadata.NumberMark metadata.RecordedCopies
      metadata.RocksNamespace metadata.StateDirectory mounts.Registration mounts.KnownMounts
      mounts.Registry places.DatasetDirectory places.DefaultTier places.DirectoryPlace
      places.OwnDirectory places.OwnPath places.OwnWalk places.PoolPlace places.TrustedUsers
      settings.SessionSettings shards.ExternalSort shards.IndexWriter shards.ShardSource
      stage.formats.DictionaryFile table.Reserve table.RocksFiles tasks.PathFile
      tasks.ScratchFiles tier.BundleFiles tier.CopyFiles tier.DaxProbe
      tier.DirectoryTier tier.IncomingFile tier.LentFiles tier.TierLock writable.mount.WritableMount
      writable.places.TierPlace writable.remote.NodeFiles
      """;

  /** Of the kernel, or of the system that root has installed. */
  private static final String SYSTEM =
      """
      cli.bugreport.KernelFiles cli.doctor.ResourceChecks
      daemon.process.MachineChecks daemon.report.ProcessMemory fuse.DeviceChannel fuse.jnr.JnrBridge
      fuse.KernelWorkers fuse.KilledPrograms fuse.mounting.Fusermount fuse.mounting.Mounter
      fuse.mounting.MountingByRoot fuse.mounting.MountRight fuse.mounting.ReadAhead
      fuse.mounting.StaleMountGuard
      fuse.system.FileUsers fuse.system.GroupWriters fuse.system.MountedNames fuse.system.Priority fuse.system.Spawn
      fuse.system.StandardStreams fuse.system.UnmappedGroups machine.MountTable machine.NativeText machine.UserNamespace
      mounts.DaemonSharing mounts.MountViewers mounts.SchedulerJob posix.AvailableMemory
      posix.BlockDevice posix.MemoryGroup posix.MountedFileSystem posix.OpenFileLimit
      """;

  /**
   * Named by the person who runs a command or mounts, who answers for it; and looks at mount points
   * and sources that nothing is opened or changed by.
   */
  private static final String GIVEN =
      """
      cli.BugreportCommand cli.BugreportPieces cli.MountFlags cli.PackCommand cli.bugreport.OwnFiles
      cli.control.PathList cli.doctor.Examination cli.mount.MountCommand
      cli.status.ProfileCommand cli.tasks.Export cli.tasks.FindingsReport
      daemon.dataset.DatasetSource fuse.Probe fuse.mounting.SessionMount mounts.MountProbe
      pack.PackCheck pack.PackDirectory pack.PackManifest pack.Packer pack.ShardOutput
      places.GivenPath places.Surroundings settings.Configuration settings.ConfigurationFile
      """;

  private static final Set<String> FILES =
      Set.of(
          "java.nio.file.Files",
          "java.io.File",
          "java.io.FileInputStream",
          "java.io.FileOutputStream",
          "java.io.RandomAccessFile",
          "java.io.FileReader",
          "java.io.FileWriter");

  /** System calls that take a name; those of LibC and FileLibC. */
  private static final Set<String> CALLS =
      Set.of(
          "open",
          "openat",
          "faccessat",
          "mount",
          "umount2",
          "chmod",
          "mkdirat",
          "unlinkat",
          "symlinkat",
          "linkat",
          "renameat2",
          "fchownat",
          "utimensat",
          "setxattr",
          "removexattr",
          "listxattr",
          "getxattr",
          "bind",
          "connect");

  @Test
  void classes_thatUseNames_areListedWithTheReasonWhyTheyMay() {
    Set<String> listed = new TreeSet<>();
    for (String names : List.of(BENEATH, OWN, SYSTEM, GIVEN)) {
      Arrays.stream(names.split("\\s+", -1))
          .filter(name -> !name.isEmpty())
          .forEach(name -> assertThat(listed.add(name)).as(name + " is listed once").isTrue());
    }
    assertThat(users()).isEqualTo(listed);
  }

  private static Set<String> users() {
    return new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("-tests.jar"))
            .importPackages("io.pmfs")
            .stream()
            .filter(PathCallsTest::isOurProgram)
            .filter(type -> accesses(type).anyMatch(PathCallsTest::takesName))
            .map(PathCallsTest::topLevel)
            .collect(Collectors.toCollection(TreeSet::new));
  }

  private static boolean isOurProgram(JavaClass type) {
    return !type.getPackageName().startsWith("io.pmfs.it")
        && !type.getPackageName().startsWith("io.pmfs.benchmarks")
        && !type.getPackageName().startsWith("io.pmfs.distribution");
  }

  private static String topLevel(JavaClass type) {
    return type.getName().substring("io.pmfs.".length()).replaceFirst("\\$.*", "");
  }

  private static Stream<? extends JavaAccess<?>> accesses(JavaClass type) {
    return Stream.of(
            type.getMethodCallsFromSelf(),
            type.getConstructorCallsFromSelf(),
            type.getMethodReferencesFromSelf(),
            type.getConstructorReferencesFromSelf())
        .flatMap(Set::stream);
  }

  private static boolean takesName(JavaAccess<?> access) {
    String owner = access.getTargetOwner().getName();
    return FILES.contains(owner)
        || (owner.endsWith("FileChannel") && access.getName().equals("open"))
        || (owner.startsWith("io.pmfs.fuse.system.")
            && owner.endsWith("LibC")
            && CALLS.contains(access.getName()));
  }
}
