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
      it              -> daemon.metrics daemon.requests cluster.server cluster.client cluster.peers cluster.members fuse fuse.mounting fuse.system fs stage stage.copies stage.formats tier source memory posix metadata compression
      distribution    -> cli settings machine
      benchmarks      -> fuse.system tier compression
      cli             -> cli.status cli.mount cli.copies cli.tasks cli.doctor cli.bugreport cli.control daemon daemon.process daemon.report mounts settings places machine pack fuse fuse.system posix metadata
      cli.status      -> cli.mount cli.tasks cli.control daemon daemon.control daemon.report daemon.requests mounts places machine fuse posix metadata
      cli.mount       -> cli.tasks cli.control daemon daemon.dataset daemon.tasks daemon.process daemon.report mounts settings places machine
      cli.copies      -> daemon daemon.process contents mounts settings places machine cache posix
      cli.tasks       -> cli.control daemon daemon.tasks daemon.report mounts places machine tasks metadata
      cli.doctor      -> cli.control daemon daemon.dataset daemon.process daemon.report mounts settings places machine cluster.members posix
      cli.bugreport   -> machine pack fuse.system metadata
      cli.control     -> daemon daemon.control daemon.tasks daemon.report daemon.requests mounts places machine tasks metadata
      daemon          -> daemon.outputs daemon.dataset daemon.control daemon.tasks daemon.process daemon.report daemon.requests contents mounts settings places machine shards fuse fuse.mounting fuse.system writable posix metadata table
      daemon.outputs  -> daemon.dataset daemon.control daemon.tasks daemon.process daemon.report contents settings places machine shards cluster cluster.server cluster.client cluster.members cluster.peers fuse fuse.mounting fuse.system writable.remote writable.mount writable posix
      daemon.dataset  -> daemon.control daemon.tasks daemon.process daemon.metrics daemon.report daemon.requests contents mounts settings places machine cache shards cluster cluster.client fuse fuse.mounting fuse.system tasks fs stage stage.copies stage.formats tier source memory posix metadata
      daemon.control  -> daemon.tasks daemon.process daemon.metrics daemon.report daemon.requests daemon.http settings machine cluster.server tasks posix metadata
      daemon.tasks    -> daemon.report machine cluster.client cluster.peers cluster.members writable tasks posix metadata
      daemon.process  -> mounts settings places machine fuse fuse.mounting metadata
      daemon.metrics  -> daemon.report daemon.http metadata
      daemon.report   -> daemon.requests mounts settings machine cache cluster cluster.server cluster.client cluster.peers cluster.members fuse.protocol writable tasks fs stage stage.copies stage.formats tier source posix metadata
      daemon.requests -> fuse.protocol posix metadata
      daemon.http     -> nothing
      contents        -> settings places machine tier
      mounts          -> settings places machine fuse fuse.system posix
      settings        -> places machine cluster cluster.client cluster.peers cluster.members stage.copies stage.formats posix
      places          -> machine fuse.system stage.formats tier posix
      machine         -> posix
      cache           -> fuse.system tier source posix metadata table
      pack            -> shards source memory posix metadata compression
      shards          -> source memory posix metadata table compression
      cluster         -> cluster.server cluster.client cluster.peers cluster.members fs stage stage.copies stage.formats source memory posix metadata
      cluster.server  -> cluster.peers stage.formats source memory posix metadata
      cluster.client  -> cluster.peers cluster.members stage.formats source metadata
      cluster.peers   -> source posix metadata
      cluster.members -> metadata
      fuse.jnr        -> fuse fuse.mounting fuse.protocol fuse.system fs source memory posix metadata
      fuse            -> fuse.mounting fuse.protocol fuse.system writable fs source memory posix metadata
      fuse.mounting   -> fuse.protocol fuse.system posix
      fuse.protocol   -> fuse.system source memory posix metadata
      fuse.system     -> writable writable.journal tier source memory posix metadata
      writable.remote -> writable.mount writable.places writable.tree writable writable.journal source memory posix metadata
      writable.mount  -> writable.drain writable.steps writable.data writable.places writable.tree writable writable.journal source memory posix metadata table
      writable.drain  -> writable.steps writable.data writable.places writable.tree writable writable.journal posix metadata
      writable.steps  -> writable.data writable.places writable.tree writable writable.journal posix metadata
      writable.data   -> writable.places writable.tree writable writable.journal memory posix metadata
      writable.places -> writable.tree writable writable.journal source posix metadata
      writable.tree   -> writable writable.journal source posix metadata table
      writable        -> writable.journal source memory posix metadata
      writable.journal -> posix metadata table
      tasks           -> fs stage stage.copies tier source memory posix metadata
      fs              -> stage stage.copies tier source memory posix metadata table
      stage           -> stage.copies stage.formats tier source memory posix metadata
      stage.copies    -> stage.formats tier memory posix metadata table
      stage.formats   -> tier memory metadata compression
      tier            -> memory posix metadata
      source          -> posix metadata
      memory          -> nothing
      posix           -> nothing
      metadata        -> table
      table           -> nothing
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
    "org.rocksdb.., table",
    "com.github.luben.zstd.., compression",
    "jnr.., fuse",
    "ru.serce.., fuse.jnr",
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
            "io.pmfs.cli..",
            "io.pmfs.daemon.control",
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
            "io.pmfs.mounts..",
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
   * Whoever else makes a directory asks OwnPath of places for it, so that nobody but its user can
   * change where it is. These make directories in one that it has checked.
   */
  private static final Set<String> MAKE_DIRECTORIES =
      Set.of(
          "io.pmfs.places.OwnWalk",
          "io.pmfs.daemon.dataset.DatasetWiring", // a temporary one, which it then has checked
          "io.pmfs.daemon.KeptMount",
          "io.pmfs.daemon.dataset.MountTiers",
          "io.pmfs.daemon.tasks.TaskLists",
          "io.pmfs.cache.CopyFiles",
          "io.pmfs.tier.BundleFiles",
          "io.pmfs.tier.CopyFiles",
          "io.pmfs.table.RocksFiles",
          "io.pmfs.metadata.StateDirectory",
          "io.pmfs.writable.places.TierPlace",
          "io.pmfs.cluster.members.ClusterSecret",
          "io.pmfs.cli.tasks.Export", // a user's copies of the user's files
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
    assertThat(makers).isSubsetOf(MAKE_DIRECTORIES).contains("io.pmfs.places.OwnWalk");
  }
}
