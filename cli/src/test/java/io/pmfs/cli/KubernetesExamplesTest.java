package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.Capacity;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.yaml.snakeyaml.Yaml;

/** The manifests in docs/kubernetes match docs/containers.md; ContainerImageIT runs one. */
final class KubernetesExamplesTest {
  /** The limit for a daemon's stop after SIGTERM, see MountCommand. */
  private static final Duration STOP_LIMIT = Duration.ofSeconds(25);

  /** {@code pmfs status} waits 30 s for a daemon's successor, and 10 s for its answer. */
  private static final int STATUS_SECONDS = 40;

  private static final Pattern TIER = Pattern.compile("ssd:/cache:(\\w+)");

  private static final Path DIRECTORY = Repository.ROOT.resolve("docs/kubernetes");

  /** Files whose first document has the container that mounts. */
  private static final String SIDECAR = "sidecar.yaml";

  private static final String DAEMON_SET = "base/daemonset.yaml reader.yaml";

  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
  }

  /** A container that mounts, with its pod and the other containers of all pods in the file. */
  private record Example(JsonObject pod, JsonObject pmfs, List<JsonObject> others) {
    static Example read(String names) {
      List<JsonObject> pods = new ArrayList<>();
      for (String name : names.split(" ", -1)) {
        JsonObject spec = parse(name).getAsJsonObject("spec");
        pods.add(spec.has("template") ? object(spec, "template", "spec") : spec);
      }
      JsonObject pod = pods.get(0);
      JsonObject pmfs =
          containers(pod).filter(c -> text(c, "name").equals("pmfs")).findFirst().orElseThrow();
      return new Example(
          pod,
          pmfs,
          pods.stream().flatMap(Example::containers).filter(c -> !c.equals(pmfs)).toList());
    }

    private static Stream<JsonObject> containers(JsonObject pod) {
      return Stream.of("initContainers", "containers").flatMap(list -> all(pod, list));
    }

    /**
     * The last line of the shell, which the container becomes, with the options of its variables.
     */
    List<String> mount() {
      String script = last(strings(pmfs, "command"));
      String line = script.substring(script.indexOf("exec ") + 5);
      List<String> words = new ArrayList<>(List.of(line.split(" ", -1)));
      words.addAll(2, options(pmfs));
      return words;
    }

    String mountpoint() {
      return last(mount());
    }

    JsonObject volumeMount(JsonObject container, String name) {
      return named(container, "volumeMounts", name);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {SIDECAR, DAEMON_SET})
  void commands_areUnderstoodAndOfTheSameMount(String file) {
    Example example = Example.read(file);
    List<List<String>> commands = new ArrayList<>();
    commands.add(example.mount());
    for (String probe : List.of("startupProbe", "readinessProbe", "livenessProbe")) {
      commands.add(strings(object(example.pmfs(), probe, "exec"), "command"));
    }
    commands.add(strings(preStop(example), "command"));

    for (List<String> command : commands) {
      boolean isShell = command.get(0).equals("sh");
      for (List<String> words : isShell ? ShellLine.commands(last(command)) : List.of(command)) {
        if (words.equals(List.of("[", "$?", "=", "4", "]"))) {
          continue; // everything is read from the source
        }
        assertThat(words).endsWith(example.mountpoint());
        if (words.get(0).equals("pmfs")) {
          assertThat(CommandLines.problemOf(words.subList(1, words.size()), world)).isNull();
        } else {
          assertThat(words).startsWith("mountpoint", "-q");
        }
      }
    }
    assertThat(commands).contains(List.of("pmfs", "status", example.mountpoint()));
    assertThat(last(strings(example.pmfs(), "command")))
        .as("mkdir of the same directory")
        .contains("mkdir -p " + example.mountpoint() + "; exec pmfs mount --foreground ");
  }

  @ParameterizedTest
  @ValueSource(strings = {SIDECAR, DAEMON_SET})
  void mount_isPropagatedFromAPrivilegedContainerToReaders(String file) {
    Example example = Example.read(file);
    JsonObject mounts = example.volumeMount(example.pmfs(), "mounts");

    assertThat(text(mounts, "mountPropagation")).isEqualTo("Bidirectional");
    assertThat(object(example.pmfs(), "securityContext").get("privileged").getAsBoolean()).isTrue();
    assertThat(example.mountpoint()).as("below it").startsWith(text(mounts, "mountPath") + "/");
    assertThat(example.others()).isNotEmpty();
    for (JsonObject other : example.others()) {
      JsonObject read = example.volumeMount(other, "mounts");
      assertThat(text(read, "mountPropagation")).isEqualTo("HostToContainer");
      assertThat(other.has("securityContext")).as("needs no privilege").isFalse();
    }
    assertThat(example.volumeMount(example.pmfs(), "source").get("readOnly").getAsBoolean())
        .isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {SIDECAR, DAEMON_SET})
  void times_leaveRoomForWhatTheyLimit(String file) {
    Example example = Example.read(file);
    List<String> preStop = strings(preStop(example), "command");
    Duration grace = TimeSpan.parse(preStop.get(preStop.indexOf("--grace") + 1));

    assertThat(example.pod().get("terminationGracePeriodSeconds").getAsInt())
        .isGreaterThan((int) grace.plus(STOP_LIMIT).toSeconds());
    for (String probe : List.of("startupProbe", "readinessProbe", "livenessProbe")) {
      assertThat(object(example.pmfs(), probe).get("timeoutSeconds").getAsInt())
          .as(probe)
          .isGreaterThanOrEqualTo(STATUS_SECONDS);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {SIDECAR, DAEMON_SET})
  void resources_areEnough(String file) {
    Example example = Example.read(file);
    String request = text(object(example.pmfs(), "resources", "requests"), "memory");
    assertThat(bytes(request)).as("docs/operations.md#memory").isGreaterThan(bytes("716Mi"));

    JsonObject cache = named(example.pod(), "volumes", "cache");
    Matcher tier = TIER.matcher(String.join(" ", example.mount()));
    assertThat(tier.find()).isTrue();
    if (cache.has("emptyDir")) {
      assertThat(bytes(text(object(cache, "emptyDir"), "sizeLimit")))
          .as("Kubernetes evicts the pod otherwise")
          .isGreaterThan(bytes(tier.group(1)));
    }
  }

  @Test
  void sidecar_isOneOfKubernetes() {
    Example example = Example.read(SIDECAR);

    assertThat(all(example.pod(), "initContainers")).contains(example.pmfs());
    assertThat(text(example.pmfs(), "restartPolicy")).isEqualTo("Always");
  }

  @Test
  void daemonSet_runsOnNodesWithGpusAndIsNotEvicted() {
    JsonObject pod = Example.read(DAEMON_SET).pod();

    assertThat(all(pod, "tolerations").map(t -> text(t, "key")))
        .contains("nvidia.com/gpu", "amd.com/gpu");
    assertThat(text(pod, "priorityClassName")).isEqualTo("system-node-critical");
  }

  @ParameterizedTest
  @ValueSource(strings = {"base", "imagenet"})
  void resources_ofKustomizations_areThere(String directory) {
    JsonObject kustomization = parse(directory + "/kustomization.yaml");

    for (String resource : strings(kustomization, "resources")) {
      assertThat(DIRECTORY.resolve(directory).resolve(resource)).exists();
    }
  }

  /** Kustomize would add a container or volume of another name, and ignore an image of another. */
  @Test
  void overlay_changesWhatTheBaseHas() {
    Example base = Example.read(DAEMON_SET);
    JsonObject overlay = parse("imagenet/kustomization.yaml");
    JsonObject patch =
        json(new Yaml().load(text(all(overlay, "patches").findFirst().orElseThrow(), "patch")));
    JsonObject pod = object(patch, "spec", "template", "spec");

    assertThat(text(object(patch, "metadata"), "name"))
        .isEqualTo(text(object(parse("base/daemonset.yaml"), "metadata"), "name"));
    assertThat(all(overlay, "images").map(image -> text(image, "name")))
        .containsExactly(text(base.pmfs(), "image").replaceFirst(":.*", ""));
    assertThat(names(pod, "containers")).isSubsetOf(names(base.pod(), "containers"));
    assertThat(names(pod, "volumes")).isSubsetOf(names(base.pod(), "volumes"));
    List<String> words = new ArrayList<>(List.of("mount", "/source", base.mountpoint()));
    words.addAll(1, options(all(pod, "containers").findFirst().orElseThrow()));
    assertThat(CommandLines.problemOf(words, world)).isNull();
    JsonObject reader = parse("reader.yaml").getAsJsonObject("spec");
    assertThat(text(object(named(reader, "volumes", "mounts"), "hostPath"), "path"))
        .isEqualTo(text(object(named(pod, "volumes", "mounts"), "hostPath"), "path"));
  }

  @Test
  void claim_isOfTheDirectoryThatTheReaderReads() {
    String text = Repository.text(DIRECTORY.resolve("claim.yaml"));
    List<JsonObject> documents = new ArrayList<>();
    new Yaml().loadAll(text).forEach(document -> documents.add(json(document)));
    JsonObject volume = documents.get(0);
    JsonObject claim = documents.get(1);
    JsonObject reader = parse("reader.yaml").getAsJsonObject("spec");

    assertThat(object(volume, "spec", "hostPath"))
        .isEqualTo(object(named(reader, "volumes", "mounts"), "hostPath"));
    assertThat(object(volume, "spec", "claimRef")).isEqualTo(object(claim, "metadata"));
    assertThat(text(object(claim, "spec"), "volumeName"))
        .isEqualTo(text(object(volume, "metadata"), "name"));
    for (String field : List.of("storageClassName", "accessModes")) {
      assertThat(object(claim, "spec").get(field)).isEqualTo(object(volume, "spec").get(field));
    }
    assertThat(object(claim, "spec", "resources", "requests"))
        .isEqualTo(object(volume, "spec", "capacity"));
    assertThat(Repository.text(DIRECTORY.resolve("reader.yaml")))
        .contains(
            "persistentVolumeClaim: {claimName: %s, readOnly: true}"
                .formatted(text(object(claim, "metadata"), "name")));
  }

  @Test
  void awaitDataset_withoutAMount_saysWhyItGaveUp() throws Exception {
    Path directory = Files.createDirectory(temporary.resolve("dataset"));

    assertThat(await(directory))
        .startsWith("1 gave up after 0 s: ")
        .contains("not a mountpoint", "node n1");
  }

  @Test
  void awaitDataset_withAMount_endsAtOnce() throws Exception {
    assertThat(await(Path.of("/proc"))).isEqualTo("0 ");
  }

  /**
   * The status and the output of the shell that waits, for another directory and without a wait.
   */
  private static String await(Path dataset) throws Exception {
    JsonObject reader = parse("reader.yaml").getAsJsonObject("spec");
    String script = last(strings(named(reader, "initContainers", "await-dataset"), "command"));
    assertThat(script).contains("limit=600", "/data/dataset");
    ProcessBuilder shell =
        new ProcessBuilder(
            "sh",
            "-c",
            script.replace("limit=600", "limit=0").replace("/data/dataset", dataset.toString()));
    shell.environment().put("NODE", "n1");
    Process process = shell.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    return process.waitFor() + " " + output;
  }

  private static JsonObject preStop(Example example) {
    return object(example.pmfs(), "lifecycle", "preStop", "exec");
  }

  private static JsonObject parse(String name) {
    return json(new Yaml().load(Repository.text(DIRECTORY.resolve(name))));
  }

  private static JsonObject json(Object document) {
    return new Gson().toJsonTree(document).getAsJsonObject();
  }

  /** A container's variables as options of {@code pmfs mount}. */
  private static List<String> options(JsonObject container) {
    return all(container, "env")
        .flatMap(
            variable ->
                Stream.of(
                    text(variable, "name")
                        .replaceFirst("^PMFS_", "--")
                        .replace('_', '-')
                        .toLowerCase(Locale.ROOT),
                    text(variable, "value")))
        .toList();
  }

  private static List<String> names(JsonObject in, String list) {
    return all(in, list).map(o -> text(o, "name")).toList();
  }

  private static long bytes(String size) {
    return Capacity.parse(size.replaceAll("i$", "iB")).bytes();
  }

  private static JsonObject object(JsonObject in, String... path) {
    JsonObject object = in;
    for (String name : path) {
      object = object.getAsJsonObject(name);
      assertThat(object).as(name).isNotNull();
    }
    return object;
  }

  private static JsonObject named(JsonObject in, String list, String name) {
    return all(in, list).filter(o -> text(o, "name").equals(name)).findFirst().orElseThrow();
  }

  private static Stream<JsonObject> all(JsonObject in, String list) {
    JsonArray array = in.has(list) ? in.getAsJsonArray(list) : new JsonArray();
    return StreamSupport.stream(array.spliterator(), false).map(JsonElement::getAsJsonObject);
  }

  private static List<String> strings(JsonObject in, String list) {
    return in.getAsJsonArray(list).asList().stream().map(JsonElement::getAsString).toList();
  }

  private static String text(JsonObject in, String name) {
    return in.get(name).getAsString();
  }

  private static String last(List<String> words) {
    return words.get(words.size() - 1);
  }
}
