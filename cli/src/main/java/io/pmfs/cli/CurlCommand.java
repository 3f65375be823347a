package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.QueryStringEncoder;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.cli.control.TaskTarget;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.Registries;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs curl}: a request to a node of a cluster by hand. */
@Command(
    name = "curl",
    description = {
      "Prints a curl command that requests a file from a node of a cluster, as other nodes do. It"
          + " is signed with the cluster's secret and works once, within a minute.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs curl /mnt/dataset/train/1.jpg",
      "  pmfs curl --node node02 --range 0-1023 /mnt/dataset/train/1.jpg | sh",
      "  pmfs curl --node node02 --resource node /mnt/dataset | sh      its status, in JSON"
    })
final class CurlCommand implements Callable<Integer> {
  private static final Duration ANSWER = Duration.ofSeconds(10);
  private static final int HTTP_OK = 200;

  private final Invocation invocation;

  @Option(
      names = "--node",
      paramLabel = "NODE",
      description =
          "The node to ask, by its name or ADDRESS:PORT in pmfs status; default: this node.")
  private @Nullable String node;

  @Option(
      names = "--resource",
      paramLabel = "WHAT",
      defaultValue = "data",
      description =
          "What to request: data, directory, status, link or xattr of the path, or node. Default:"
              + " data.")
  private String resource;

  @Option(
      names = "--range",
      paramLabel = "A-B",
      description = "Only the bytes A to B of the data, counted from 0.")
  private @Nullable String range;

  @Parameters(paramLabel = "PATH", description = "A file or directory in the mount.")
  private String path;

  CurlCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    if (range != null && !range.matches("\\d{1,18}-\\d{0,18}|-\\d{1,18}")) {
      throw MountFailure.usage("--range: '" + range + "' is not a range; write it as 0-1023");
    }
    Surroundings surroundings = invocation.surroundings();
    Registries registries = Registries.open(surroundings, invocation::warn);
    TaskTarget target = TaskTarget.find(List.of(path), registries, surroundings);
    Registry.Entry mount = target.dataset().mount();
    QueryStringEncoder query = new QueryStringEncoder("/curl", UTF_8);
    query.addParam("resource", resource);
    query.addParam("path", PathText.encode(target.paths().get(0)));
    if (node != null) {
      query.addParam("node", node);
    }
    if (range != null) {
      query.addParam("range", range);
    }
    try {
      ControlClient.Answer answer =
          new MountClient(mount, surroundings).ask(HttpMethod.GET, query.toString(), ANSWER);
      if (answer.status() != HTTP_OK) {
        throw MountFailure.usage(mount.mountpoint() + ": " + answer.error());
      }
      JsonObject object = JsonParser.parseString(answer.body()).getAsJsonObject();
      invocation.out().println(object.get("command").getAsString());
      return ExitStatus.DONE;
    } catch (IOException | JsonParseException | IllegalStateException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: daemon (pid %d): %s".formatted(mount.mountpoint(), mount.pid(), Reason.of(e)),
          e);
    }
  }
}
