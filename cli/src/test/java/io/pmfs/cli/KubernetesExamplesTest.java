package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.Capacity;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.BeforeEach;
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

  private static final Pattern TIER = Pattern.compile("--tier ssd:/cache:(\\w+)");

  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
  }

  /** A container that mounts, with its pod and the other containers of all pods in the file. */
  private record Example(JsonObject pod, JsonObject pmfs, List<JsonObject> others) {
    static Example read(String name) {
      List<JsonObject> pods = new ArrayList<>();
      Path file = Repository.ROOT.resolve("docs/kubernetes").resolve(name);
      for (Object document : new Yaml().loadAll(Repository.text(file))) {
        JsonObject object = new Gson().toJsonTree(document).getAsJsonObject();
        JsonObject spec = object.getAsJsonObject("spec");
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

    /** The last line of the shell, which the container becomes. */
    String mount() {
      String script = last(strings(pmfs, "command"));
      return script.substring(script.indexOf("exec ") + 5);
    }

    String mountpoint() {
      return mount().substring(mount().lastIndexOf(' ') + 1);
    }

    JsonObject volumeMount(JsonObject container, String name) {
      return named(container, "volumeMounts", name);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"sidecar.yaml", "daemonset.yaml"})
  void commands_areUnderstoodAndOfTheSameMount(String file) {
    Example example = Example.read(file);
    List<List<String>> commands = new ArrayList<>();
    commands.add(List.of(example.mount().split(" ", -1)));
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
  @ValueSource(strings = {"sidecar.yaml", "daemonset.yaml"})
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
  @ValueSource(strings = {"sidecar.yaml", "daemonset.yaml"})
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
  @ValueSource(strings = {"sidecar.yaml", "daemonset.yaml"})
  void resources_areEnough(String file) {
    Example example = Example.read(file);
    String request = text(object(example.pmfs(), "resources", "requests"), "memory");
    assertThat(bytes(request)).as("docs/operations.md#memory").isGreaterThan(bytes("716Mi"));

    JsonObject cache = named(example.pod(), "volumes", "cache");
    Matcher tier = TIER.matcher(example.mount());
    assertThat(tier.find()).isTrue();
    if (cache.has("emptyDir")) {
      assertThat(bytes(text(object(cache, "emptyDir"), "sizeLimit")))
          .as("Kubernetes evicts the pod otherwise")
          .isGreaterThan(bytes(tier.group(1)));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = "sidecar.yaml")
  void sidecar_isOneOfKubernetes(String file) {
    Example example = Example.read(file);

    assertThat(all(example.pod(), "initContainers")).contains(example.pmfs());
    assertThat(text(example.pmfs(), "restartPolicy")).isEqualTo("Always");
  }

  private static JsonObject preStop(Example example) {
    return object(example.pmfs(), "lifecycle", "preStop", "exec");
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
