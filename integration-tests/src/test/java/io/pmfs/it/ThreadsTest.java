package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.DaemonThread;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Every class that starts threads otherwise than by {@link DaemonThread#lasting} or as a {@link
 * DaemonPool}, and why an error can neither end what has to go on, nor leave somebody waiting:
 * docs/ semantics.md, 5.26 and 5.27. A class that is new here needs a place in a list, and so a
 * reason.
 */
final class ThreadsTest {
  /** Their loops catch whatever is thrown in them, and go on. */
  private static final String LOOPS =
      """
      cluster.members.Attendance cluster.members.InfinispanMembership
      cluster.members.ProvenServerSocket cluster.server.Workers daemon.http.HttpSocket
      """;

  /**
   * Each thread has one task, which ends. What is thrown in it is the task's outcome; if it cannot
   * be started the caller does the work, leaves it out, or says that it is not done.
   */
  private static final String TASKS =
      """
      cache.CacheClient cache.CacheService cluster.OwnView cluster.SourceProbes
      cluster.members.NodeSearch daemon.Daemon daemon.Wiring
      daemon.dataset.DatasetSource daemon.dataset.MountTiers daemon.dataset.OtherCopies
      daemon.report.NodesReport daemon.tasks.Drains daemon.tasks.KeptTasks daemon.tasks.SharedTask
      fuse.KernelWorkers fuse.ReadModeChoice machine.Limited mounts.MountProbe stage.FetchThreads
      tasks.RunningTask tier.DirectoryTier writable.mount.Sessions writable.places.WriteBack
      writable.remote.Owner writable.remote.OwnerServer writable.steps.Copies writable.tree.SourceLooks
      """;

  /** Before a mount is announced: without the thread there is no mount. */
  private static final String BEGINNINGS =
      """
      fuse.jnr.JnrBridge fuse.Probe fuse.mounting.Fusermount shards.IndexBuilder
      """;

  /** In commands that a person waits for, and that end with the error. */
  private static final String COMMANDS =
      """
      cli.Main cli.PackDisplay cli.status.Replies mounts.KnownMounts pack.Packer
      pack.Parallel pack.SourceWalk
      """;

  private static final Set<String> EXECUTORS =
      Set.of(
          Executors.class.getName(),
          ThreadPoolExecutor.class.getName(),
          ScheduledThreadPoolExecutor.class.getName(),
          ForkJoinPool.class.getName(),
          "java.util.Timer");

  /** Their threads are started again after whatever is thrown in them. */
  private static final Set<String> LASTING = Set.of("lasting", "repeating");

  private static final Set<String> COMMON_POOL =
      Set.of("parallelStream", "parallel", "delayedExecutor");

  @Test
  void classes_thatStartThreadsThemselves_areListedWithTheReasonWhyTheyMay() {
    Set<String> listed = new TreeSet<>();
    for (String names : List.of(LOOPS, TASKS, BEGINNINGS, COMMANDS)) {
      Arrays.stream(names.split("\\s+", -1))
          .filter(name -> !name.isEmpty())
          .forEach(name -> assertThat(listed.add(name)).as(name + " is listed once").isTrue());
    }
    assertThat(starters()).isEqualTo(listed);
  }

  private static Set<String> starters() {
    return new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("-tests.jar"))
            .importPackages("io.pmfs")
            .stream()
            .filter(type -> !type.getPackageName().startsWith("io.pmfs.it"))
            .filter(type -> !type.getPackageName().startsWith("io.pmfs.benchmarks"))
            .filter(type -> !type.isEquivalentTo(DaemonThread.class))
            .filter(type -> !type.isEquivalentTo(DaemonPool.class))
            .filter(type -> accesses(type).anyMatch(ThreadsTest::startsThreads))
            .map(type -> type.getName().substring("io.pmfs.".length()).replaceFirst("\\$.*", ""))
            .collect(Collectors.toCollection(TreeSet::new));
  }

  private static Stream<? extends JavaAccess<?>> accesses(JavaClass type) {
    return Stream.of(
            type.getMethodCallsFromSelf(),
            type.getConstructorCallsFromSelf(),
            type.getMethodReferencesFromSelf(),
            type.getConstructorReferencesFromSelf())
        .flatMap(Set::stream);
  }

  private static boolean startsThreads(JavaAccess<?> access) {
    JavaClass owner = access.getTargetOwner();
    String name = access.getName();
    return (owner.isEquivalentTo(DaemonThread.class) && !LASTING.contains(name))
        || (owner.isAssignableTo(Thread.class) && name.equals("<init>"))
        || (EXECUTORS.contains(owner.getName()) && isMaker(name))
        || COMMON_POOL.contains(name);
  }

  private static boolean isMaker(String name) {
    return name.equals("<init>") || name.startsWith("new");
  }
}
