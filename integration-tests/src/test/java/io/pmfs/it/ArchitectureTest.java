package io.pmfs.it;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Who may import whom, as docs/architecture.md draws it. */
final class ArchitectureTest {
  private static final JavaClasses CLASSES =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .withImportOption(location -> !location.contains("-tests.jar"))
          .importPackages("io.pmfs");

  /** Top first: a package imports only what stands after it. */
  private static final List<String> LAYERS = List.of("cli", "fuse", "fs", "stage", "tier");

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cli",
        "fuse",
        "packing",
        "cluster",
        "fs",
        "stage",
        "tier",
        "metadata",
        "compression"
      })
  void packages_areAllSeen(String name) {
    assertThat(CLASSES.stream().filter(c -> c.getPackageName().startsWith("io.pmfs." + name)))
        .as("classes of io.pmfs.%s on the class path", name)
        .isNotEmpty();
  }

  @Test
  void packages_areAllKnownHere() {
    assertThat(CLASSES.stream().map(c -> c.getPackageName().split("\\.", -1)[2]).distinct())
        .as("a new package needs its place in these rules")
        .isSubsetOf(
            "cli", "fuse", "packing", "cluster", "fs", "stage", "tier", "metadata", "compression");
  }

  @Test
  void imports_pointDown() {
    for (int i = 1; i < LAYERS.size(); i++) {
      String[] above =
          LAYERS.subList(0, i).stream().map(n -> "io.pmfs." + n + "..").toArray(String[]::new);
      noClasses()
          .that()
          .resideInAPackage("io.pmfs." + LAYERS.get(i) + "..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(above)
          .check(CLASSES);
    }
  }

  @ParameterizedTest
  @CsvSource({"metadata, compression", "compression, metadata"})
  void lowestPackages_importNoOther(String name, String beside) {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs." + name + "..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(
            "io.pmfs.cli..",
            "io.pmfs.fuse..",
            "io.pmfs.packing..",
            "io.pmfs.fs..",
            "io.pmfs.stage..",
            "io.pmfs.tier..",
            "io.pmfs." + beside + "..")
        .check(CLASSES);
  }

  @ParameterizedTest
  @CsvSource({
    "org.rocksdb.., metadata",
    "com.github.luben.zstd.., compression",
    "jnr.., fuse",
    "ru.serce.., fuse",
    "org.apache.commons.compress.., packing",
    "com.kenai.., fuse",
    "picocli.., cli",
    "org.tomlj.., cli",
    "ch.qos.logback.., cli",
    "org.bouncycastle.., cluster",
    "me.tongfei.., cli",
    "org.jline.., cli"
  })
  void libraries_areImportedByOnePackage(String library, String importer) {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.pmfs." + importer + "..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage(library)
        .check(CLASSES);
  }

  /** How long peers take there, requests of an access log here. */
  @Test
  void histograms_areKeptByTheClusterAndProfiles() {
    noClasses()
        .that()
        .resideOutsideOfPackages("io.pmfs.cluster..", "io.pmfs.cli.requests..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("org.HdrHistogram..")
        .check(CLASSES);
  }

  /** It makes lines and adds them up; whose they are is none of its business. */
  @Test
  void requests_knowNothingOfTheCommandLine() {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs.cli.requests..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(
            "io.pmfs.cli",
            "io.pmfs.cli.metrics..",
            "io.netty..",
            "picocli..",
            "ch.qos.logback..",
            "com.google.gson..")
        .check(CLASSES);
  }

  /** It is handed what it reads; commands, options and reports are none of its business. */
  @Test
  void metrics_knowNothingOfTheCommandLine() {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs.cli.metrics..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("io.pmfs.cli")
        .orShould()
        .dependOnClassesThat()
        .resideInAnyPackage("picocli..", "ch.qos.logback..", "com.google.gson..")
        .check(CLASSES);
  }

  /** Beside the metrics: it is handed whom to ask, and writes what it gets. */
  @Test
  void bugreport_knowsNothingOfTheCommandLine() {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs.cli.bugreport..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("io.pmfs.cli", "io.pmfs.cli.metrics..")
        .orShould()
        .dependOnClassesThat()
        .resideInAnyPackage("picocli..", "ch.qos.logback..", "com.google.gson..", "io.netty..")
        .check(CLASSES);
  }

  @Test
  void micrometer_isImportedByMetricsOnly() {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.pmfs.cli.metrics..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("io.micrometer..", "io.prometheus..")
        .check(CLASSES);
  }

  /** The control socket here, peers there. */
  @Test
  void netty_isImportedByWhatSpeaksHttp() {
    noClasses()
        .that()
        .resideOutsideOfPackages("io.pmfs.cli..", "io.pmfs.cluster..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("io.netty..")
        .check(CLASSES);
  }

  /**
   * JSON is written and read where its format is defined: reports here, a pack's manifest there.
   */
  @Test
  void json_isWrittenByTheCommandLineAndPacks() {
    noClasses()
        .that()
        .resideOutsideOfPackages("io.pmfs.cli..", "io.pmfs.packing..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("com.google.gson..")
        .check(CLASSES);
  }

  @Test
  void environmentAndExit_areTouchedByTheCommandLineOnly() {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.pmfs.cli..")
        .should()
        .callMethodWhere(
            target(owner(name("java.lang.System")))
                .and(target(nameMatching("getenv|getProperty|getProperties|setProperty|exit"))))
        .orShould()
        .callMethodWhere(
            target(owner(name("java.lang.Runtime"))).and(target(nameMatching("exit|halt"))))
        .check(CLASSES);
  }

  /** Beside the kernel boundary: it knows no mounts, and needs the backing store alone. */
  @Test
  void packing_importsTheLowestAndTierOnly() {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs.packing..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("io.pmfs.cli..", "io.pmfs.fuse..", "io.pmfs.fs..", "io.pmfs.stage..")
        .orShould()
        .dependOnClassesThat()
        .resideInAnyPackage("jnr..", "org.rocksdb..", "com.github.luben.zstd..")
        .check(CLASSES);
    noClasses()
        .that()
        .resideInAnyPackage("io.pmfs.fuse..", "io.pmfs.fs..", "io.pmfs.stage..", "io.pmfs.tier..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("io.pmfs.packing..")
        .check(CLASSES);
  }

  @Test
  void packages_haveNoCycles() {
    slices().matching("io.pmfs.(*)..").should().beFreeOfCycles().check(CLASSES);
  }
}
