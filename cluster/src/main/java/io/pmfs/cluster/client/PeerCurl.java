package io.pmfs.cluster.client;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.metadata.FileName;
import java.time.InstantSource;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Makes curl(1) command lines that send a node the same requests as other nodes do. Each is signed,
 * for one use within {@link RequestSignature#MAX_SKEW_MILLIS}. Safe for use by many threads.
 */
public final class PeerCurl {
  private static final String NODE = "node";
  private static final List<String> RESOURCES =
      List.of("data", "directory", "status", "link", "xattr", NODE);

  private final byte[] key;
  private final boolean isEncrypted;
  private final Function<Member, InstantSource> clocks;

  /**
   * For the nodes of one cluster.
   *
   * @param isEncrypted whether they speak HTTPS
   * @param clocks the nodes' clocks, with which their requests are signed
   */
  public PeerCurl(byte[] key, boolean isEncrypted, Function<Member, InstantSource> clocks) {
    this.key = key.clone();
    this.isEncrypted = isEncrypted;
    this.clocks = clocks;
  }

  /**
   * A command line for a shell.
   *
   * @param resource a resource of docs/formats.md, Peers, that GET reads
   * @param path below the dataset's root
   * @param range the range of bytes in curl's syntax, {@code 0-1023}; null for all
   * @throws IllegalArgumentException with a one-line message, if the resource is unknown
   */
  public String get(Member peer, String resource, FileName path, @Nullable String range) {
    return command(peer, HttpMethod.GET, resource, path, range);
  }

  /** The same for the head of the answer only. */
  String head(Member peer, String resource, FileName path) {
    return command(peer, HttpMethod.HEAD, resource, path, null);
  }

  private String command(
      Member peer, HttpMethod method, String resource, FileName path, @Nullable String range) {
    if (!RESOURCES.contains(resource)) {
      throw new IllegalArgumentException(
          "'" + resource + "' is not known; choose one of " + String.join(", ", RESOURCES));
    }
    String target = "/v1/" + resource + (resource.equals(NODE) ? "" : "/" + PeerPath.encode(path));
    HttpHeaders headers = PeerFormat.headers();
    if (range != null) {
      headers.set(HttpHeaderNames.RANGE, "bytes=" + range);
    }
    new RequestSignature(key, peer.instance(), clocks.apply(peer))
        .sign(method.name(), target, headers);
    return "curl --silent --show-error "
        + (method.equals(HttpMethod.HEAD) ? "--head " : "")
        + (range == null ? "" : "--range " + quoted(range) + " ")
        + "--header "
        + quoted("Authorization: " + headers.get(HttpHeaderNames.AUTHORIZATION))
        + " "
        + quoted((isEncrypted ? "https" : "http") + "://" + PeerLink.host(peer) + target);
  }

  private static String quoted(String word) {
    return "'" + word.replace("'", "'\\''") + "'";
  }
}
