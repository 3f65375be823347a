package io.pmfs.it;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.nameMatching;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
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

  /**
   * Who may import whom, each without the io.pmfs before it. A package imports only what stands
   * below it, so that there is neither a way up nor a circle. docs/architecture.md has the same.
   */
  private static final String TABLE =
      """
      it              -> cli daemon.metrics daemon.requests cluster.peers cluster.members fuse fuse.mounting fuse.system fs stage tier metadata compression
      distribution    -> cli settings
      benchmarks      -> fuse.system tier compression
      cli             -> cli.doctor cli.bugreport cli.control daemon daemon.report daemon.requests settings cache pack fuse fuse.system fs tier metadata
      cli.doctor      -> cli.control daemon daemon.report settings cluster.members tier
      cli.bugreport   -> pack settings fuse.system metadata
      cli.control     -> daemon daemon.report daemon.requests settings fs metadata
      daemon          -> daemon.report daemon.metrics daemon.requests daemon.http settings cache shards cluster cluster.peers cluster.members fuse fuse.mounting fuse.protocol fuse.system writable.remote writable.mount writable fs stage tier metadata
      daemon.metrics  -> daemon.report daemon.http metadata
      daemon.report   -> daemon.requests settings cache cluster cluster.peers cluster.members fuse fuse.protocol writable fs stage tier metadata
      daemon.requests -> fuse.protocol tier metadata
      daemon.http     -> nothing
      settings        -> cluster cluster.peers cluster.members fuse fuse.system stage tier
      cache           -> fuse.system tier metadata
      pack            -> shards tier metadata compression
      shards          -> tier metadata compression
      cluster         -> cluster.peers cluster.members fs stage tier metadata
      cluster.peers   -> cluster.members stage tier metadata
      cluster.members -> metadata
      fuse            -> fuse.mounting fuse.protocol fuse.system writable fs tier metadata
      fuse.mounting   -> fuse.protocol fuse.system tier
      fuse.protocol   -> fuse.system tier metadata
      fuse.system     -> writable writable.journal tier metadata
      writable.remote -> writable.mount writable.places writable writable.journal tier metadata
      writable.mount  -> writable.drain writable.steps writable.data writable.places writable.tree writable writable.journal tier metadata
      writable.drain  -> writable.steps writable.data writable.places writable.tree writable writable.journal tier metadata
      writable.steps  -> writable.data writable.places writable.tree writable writable.journal tier metadata
      writable.data   -> writable.places writable.tree writable writable.journal tier metadata
      writable.places -> writable.tree writable writable.journal tier metadata
      writable.tree   -> writable writable.journal tier metadata
      writable        -> writable.journal tier metadata
      writable.journal -> tier metadata
      fs              -> stage tier metadata
      stage           -> tier metadata compression
      tier            -> metadata
      metadata        -> nothing
      compression     -> nothing
      """;

  private static final Path ROOT = Path.of("").toAbsolutePath().resolve("..").normalize();
  private static final Pattern PACKAGE = Pattern.compile("(?m)^package io\\.pmfs\\.([\\w.]+);");
  private static final Pattern IMPORT =
      Pattern.compile("(?m)^import (?:static )?io\\.pmfs\\.([a-z]\\w*(?:\\.[a-z]\\w*)*)\\.[A-Z]");

  /** What each package may import, top first. */
  private final Map<String, Set<String>> allowed = new LinkedHashMap<>();

  /** What each package imports, by its sources and by its classes. */
  private final Map<String, Set<String>> actual = new TreeMap<>();

  @BeforeEach
  void readTable() {
    for (String row : TABLE.lines().toList()) {
      String[] sides = row.split(" +-> ", 2);
      allowed.put(
          sides[0], sides[1].equals("nothing") ? Set.of() : Set.of(sides[1].split(" ", -1)));
    }
  }

  @BeforeEach
  void readImports() throws IOException {
    for (Path file : sources()) {
      String text = Files.readString(file, UTF_8);
      Matcher own = PACKAGE.matcher(text);
      if (own.find()) {
        IMPORT.matcher(text).results().forEach(found -> add(own.group(1), found.group(1)));
        add(own.group(1), own.group(1));
      }
    }
    for (JavaClass type : CLASSES) {
      for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
        String name = dependency.getTargetClass().getBaseComponentType().getPackageName();
        if (name.startsWith("io.pmfs.")) {
          add(shortOf(type.getPackageName()), shortOf(name));
        }
      }
    }
  }

  private void add(String importer, String imported) {
    Set<String> all = actual.computeIfAbsent(importer, name -> new TreeSet<>());
    if (!imported.equals(importer)) {
      all.add(imported);
    }
  }

  private static String shortOf(String packageName) {
    return packageName.substring("io.pmfs.".length());
  }

  /** Those of every module, also of modules that this one does not know. */
  private static List<Path> sources() throws IOException {
    List<Path> files = new ArrayList<>();
    try (Stream<Path> modules = Files.list(ROOT)) {
      for (Path module : modules.filter(one -> Files.exists(one.resolve("pom.xml"))).toList()) {
        boolean isTests = module.endsWith("integration-tests");
        Path sources = module.resolve(isTests ? "src/test/java" : "src/main/java");
        try (Stream<Path> found = Files.walk(sources)) {
          found.filter(file -> file.toString().endsWith(".java")).forEach(files::add);
        }
      }
    }
    return files;
  }

  @Test
  void table_pointsDownOnly() {
    List<String> order = List.copyOf(allowed.keySet());
    List<String> wrong = new ArrayList<>();
    allowed.forEach(
        (importer, names) ->
            names.stream()
                .filter(name -> order.indexOf(name) <= order.indexOf(importer))
                .forEach(name -> wrong.add(importer + " -> " + name)));
    assertThat(wrong).as("imports of what stands above, or nowhere").isEmpty();
  }

  @Test
  void table_hasEveryPackageAndNoOther() {
    assertThat(actual.keySet())
        .as("a new package needs its place in the table")
        .containsExactlyInAnyOrderElementsOf(allowed.keySet());
  }

  /** Of the others, which are not on the class path here, there are the sources. */
  @Test
  void classes_ofTheProgram_areAllSeen() {
    Set<String> seen = new TreeSet<>(Set.of("it", "distribution", "benchmarks"));
    CLASSES.forEach(type -> seen.add(shortOf(type.getPackageName())));
    assertThat(seen).isEqualTo(allowed.keySet());
  }

  @Test
  void imports_areThoseOfTheTable() {
    List<String> wrong = new ArrayList<>();
    actual.forEach(
        (importer, names) ->
            names.stream()
                .filter(name -> !allowed.getOrDefault(importer, Set.of()).contains(name))
                .forEach(name -> wrong.add(importer + " -> " + name)));
    assertThat(wrong).as("imports that the table does not have").isEmpty();
  }

  @Test
  void table_isThatOfTheDocument() throws IOException {
    assertThat(Files.readString(ROOT.resolve("docs/architecture.md"), UTF_8))
        .contains("\n\n" + TABLE.indent(4) + "\n");
  }

  @Test
  void packages_haveNoCycles() {
    slices().matching("io.pmfs.(**)").should().beFreeOfCycles().check(CLASSES);
  }

  @ParameterizedTest
  @CsvSource({
    "org.rocksdb.., metadata",
    "com.github.luben.zstd.., compression",
    "jnr.., fuse",
    "ru.serce.., fuse",
    "com.kenai.., fuse",
    "picocli.., cli",
    "org.tomlj.., settings",
    "ch.qos.logback.., daemon",
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
        .resideOutsideOfPackages("io.pmfs.cluster..", "io.pmfs.daemon.requests..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("org.HdrHistogram..")
        .check(CLASSES);
  }

  /** They are handed what they read; formats and logs are none of their business. */
  @ParameterizedTest
  @ValueSource(strings = {"daemon.metrics", "daemon.requests", "cli.bugreport"})
  void whatIsHandedItsInput_knowsNoFormats(String name) {
    noClasses()
        .that()
        .resideInAPackage("io.pmfs." + name)
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("picocli..", "ch.qos.logback..", "com.google.gson..")
        .check(CLASSES);
  }

  /** One writes tar files, the other reads them. */
  @Test
  void tar_isReadByShardsAndWrittenByPack() {
    noClasses()
        .that()
        .resideOutsideOfPackages("io.pmfs.shards..", "io.pmfs.pack..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("org.apache.commons.compress..")
        .check(CLASSES);
  }

  @Test
  void micrometer_isImportedByMetricsOnly() {
    noClasses()
        .that()
        .resideOutsideOfPackage("io.pmfs.daemon.metrics..")
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
        .resideOutsideOfPackages(
            "io.pmfs.cli",
            "io.pmfs.cli.control",
            "io.pmfs.cli.doctor",
            "io.pmfs.daemon",
            "io.pmfs.daemon.http",
            "io.pmfs.daemon.metrics",
            "io.pmfs.daemon.report",
            "io.pmfs.cluster..")
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
        .resideOutsideOfPackages(
            "io.pmfs.cli..",
            "io.pmfs.cache..",
            "io.pmfs.daemon..",
            "io.pmfs.settings..",
            "io.pmfs.pack..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("com.google.gson..")
        .check(CLASSES);
  }

  @Test
  void environmentAndExit_areTouchedByTheCommandLineOnly() {
    noClasses()
        .that()
        .resideOutsideOfPackages("io.pmfs.cli..", "io.pmfs.daemon..", "io.pmfs.settings..")
        .should()
        .callMethodWhere(
            target(owner(name("java.lang.System")))
                .and(target(nameMatching("getenv|getProperty|getProperties|setProperty|exit"))))
        .orShould()
        .callMethodWhere(
            target(owner(name("java.lang.Runtime"))).and(target(nameMatching("exit|halt"))))
        .check(CLASSES);
  }

  /**
   * Whoever else makes a directory asks OwnPath of settings for it, so that nobody but its user can
   * change where it is. These make directories in one that it has checked.
   */
  private static final Set<String> MAKE_DIRECTORIES =
      Set.of(
          "io.pmfs.settings.OwnWalk",
          "io.pmfs.daemon.Wiring", // a temporary one, which it then has checked
          "io.pmfs.daemon.KeptMount",
          "io.pmfs.daemon.MountTiers",
          "io.pmfs.daemon.TaskLists",
          "io.pmfs.cache.CopyFiles",
          "io.pmfs.tier.BundleFiles",
          "io.pmfs.tier.CopyFiles",
          "io.pmfs.metadata.RocksFiles",
          "io.pmfs.metadata.StateDirectory",
          "io.pmfs.writable.places.TierPlace",
          "io.pmfs.cluster.members.ClusterSecret",
          "io.pmfs.cli.Export", // a user's copies of the user's files
          "io.pmfs.pack.PackDirectory", // a user's dataset and not pmfs's own
          "io.pmfs.distribution.Documents",
          "io.pmfs.benchmarks.CopyReadBenchmark",
          "io.pmfs.benchmarks.CopyWriteBenchmark");

  @Test
  void directories_areMadeWhereNobodyElseCanChangeThem() {
    Set<String> makers = new TreeSet<>();
    for (JavaClass one : CLASSES) {
      one.getMethodCallsFromSelf().stream()
          .filter(call -> call.getTargetOwner().getName().equals("java.nio.file.Files"))
          .filter(call -> call.getName().matches("create(Temp)?Director(y|ies)"))
          .forEach(call -> makers.add(one.getName().replaceFirst("\\$.*", "")));
    }
    assertThat(makers).isSubsetOf(MAKE_DIRECTORIES).contains("io.pmfs.settings.OwnWalk");
  }
}
