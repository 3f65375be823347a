package io.pmfs.it;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The tests with the tag {@code fsdax}, each in a virtual machine that has persistent memory. */
final class FsdaxGuestIT {
  /** For a busy machine: of two idle cores it takes a sixth of that at most. */
  private static final Duration LIMIT = Duration.ofMinutes(15);

  /**
   * What takes few minutes in all.
   *
   * @param classes whose tests run
   */
  @ParameterizedTest
  @OnRequest(value = "vm", what = "in virtual machines with persistent memory")
  @CsvSource({
    "nvdimm, ext4, DaxProbeFsdaxTest FsdaxTierTest ZeroCopyIT",
    "virtio-pmem, ext4, DaxProbeFsdaxTest"
  })
  void guest_withPersistentMemory_passesItsTests(String device, String fileSystem, String classes) {
    run(device, fileSystem, "short", classes);
  }

  /** The rest of them. */
  @ParameterizedTest
  @OnRequest(value = "vm", what = "in virtual machines with persistent memory")
  @CsvSource({
    "nvdimm, ext4, DaxAttributeTest PoolMappingTest FsdaxIT DevdaxTierTest",
    "nvdimm, xfs, DaxProbeFsdaxTest DaxAttributeTest PoolMappingTest FsdaxTierTest ZeroCopyIT",
    "virtio-pmem, ext4, DaxAttributeTest"
  })
  void guest_withPersistentMemory_passesLongerTests(
      String device, String fileSystem, String classes) {
    run(device, fileSystem, "long", classes);
  }

  private static void run(String device, String fileSystem, String part, String classes) {
    List<String> machine = new ArrayList<>(List.of("--device", device, "--fs", fileSystem));
    if (device.equals("nvdimm")) {
      machine.addAll(List.of("--devdax", "128"));
    }
    // Enough for an XFS that lays files out for mappings of 2 MiB.
    machine.addAll(List.of("--size", part.equals("long") ? "1024" : "512"));
    List<String> selection = new ArrayList<>(List.of("--include-tag=fsdax"));
    testClasses(List.of(classes.split(" ", -1)))
        .forEach(name -> selection.add("--select-class=" + name));
    Guest.run(String.join("-", device, fileSystem, part), LIMIT, machine, List.of(), selection);
  }

  private static List<String> testClasses(List<String> simpleNames) {
    return new ClassFileImporter()
            .importPaths(
                Guest.MODULES.stream()
                    .map(module -> Guest.ROOT.resolve(module).resolve("target/test-classes"))
                    .toList())
            .stream()
            .filter(FsdaxGuestIT::hasTheTag)
            .filter(test -> simpleNames.contains(test.getSimpleName()))
            .map(JavaClass::getName)
            .sorted()
            .toList();
  }

  private static boolean hasTheTag(JavaClass candidate) {
    return candidate
        .tryGetAnnotationOfType(Tag.class)
        .map(tag -> tag.value().equals("fsdax"))
        .orElse(false);
  }
}
