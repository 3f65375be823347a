package io.pmfs.cluster.server;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerPath;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A request whose head is well-formed.
 *
 * @param path the file's path; empty for a batch, for control and for outputs
 * @param target the request's target below /v1/, for control and outputs
 * @param expected the requested version; null for any
 * @param range the Range header; null for the whole file
 * @param node the asking node, if it keeps copies; a hint, because it is not signed
 * @param wanted the blocks that it would read next; also a hint
 */
record PeerRequest(
    Resource resource,
    HttpMethod method,
    FileName path,
    String target,
    @Nullable SourceVersion expected,
    boolean onlyCopies,
    @Nullable String range,
    @Nullable UUID node,
    HeldBlocks.Wanted wanted) {
  private static final String ROOT = "/v1/";

  enum Resource {
    DATA,
    BATCH,
    BLOCKS,
    DIRECTORY,
    STATUS,
    LINK,
    XATTR,
    CONTROL,
    OUTPUTS;

    boolean isData() {
      return this == DATA || this == BATCH;
    }

    /** Whether the answer only reports existing copies, and waits for nothing. */
    boolean isAboutCopies() {
      return this == BLOCKS;
    }

    /** The most bytes that a request's body may have. */
    int maxBodyBytes() {
      return switch (this) {
        case BATCH -> HttpLimits.MAX_BATCH_REQUEST_BYTES;
        case CONTROL -> HttpLimits.MAX_CONTROL_BYTES;
        case OUTPUTS -> HttpLimits.MAX_OUTPUTS_BYTES;
        default -> 0;
      };
    }
  }

  static PeerRequest of(HttpRequest request) throws Refusal {
    String target = request.uri();
    HttpMethod method = request.method();
    if (!target.startsWith(ROOT)) {
      throw new Refusal(HttpResponseStatus.NOT_FOUND, "all resources are below " + ROOT);
    }
    String rest = target.substring(ROOT.length());
    int slash = rest.indexOf('/');
    String name = slash < 0 ? rest : rest.substring(0, slash);
    Resource resource = resource(name.replaceFirst("\\?.*", ""), method, slash >= 0);
    HttpHeaders headers = request.headers();
    boolean hasFile = resource != Resource.CONTROL && resource != Resource.OUTPUTS;
    String path = slash < 0 || !hasFile ? "" : rest.substring(slash + 1);
    return new PeerRequest(
        resource,
        method,
        PeerPath.decode(path),
        rest,
        expected(headers),
        headers.containsValue(HttpHeaderNames.CACHE_CONTROL, "only-if-cached", true),
        headers.get(HttpHeaderNames.RANGE),
        node(headers),
        wanted(headers));
  }

  private static Resource resource(String name, HttpMethod method, boolean hasPath) throws Refusal {
    if (name.equals("node") || name.equals("task")) {
      return Resource.CONTROL;
    }
    if (name.equals("data") && method.equals(HttpMethod.POST) && !hasPath) {
      return Resource.BATCH;
    }
    if (name.equals("outputs") && method.equals(HttpMethod.POST) && hasPath) {
      return Resource.OUTPUTS;
    }
    Resource resource =
        switch (name) {
          case "data" -> Resource.DATA;
          case "blocks" -> Resource.BLOCKS;
          case "directory" -> Resource.DIRECTORY;
          case "status" -> Resource.STATUS;
          case "link" -> Resource.LINK;
          case "xattr" -> Resource.XATTR;
          default -> throw new Refusal(HttpResponseStatus.NOT_FOUND, "no such resource");
        };
    boolean isHead = method.equals(HttpMethod.HEAD) && resource == Resource.DATA;
    if (!method.equals(HttpMethod.GET) && !isHead) {
      throw new Refusal(
          HttpResponseStatus.METHOD_NOT_ALLOWED, "the resource does not allow this method");
    }
    return resource;
  }

  private static @Nullable SourceVersion expected(HttpHeaders headers) throws Refusal {
    String value = headers.get(RequestSignature.EXPECTED);
    try {
      return value == null ? null : PeerFormat.version(value);
    } catch (IllegalArgumentException e) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST,
          RequestSignature.EXPECTED + " is malformed: it must be SIZE.SECONDS.NANOS");
    }
  }

  private static @Nullable UUID node(HttpHeaders headers) throws Refusal {
    String value = headers.get(PeerFormat.NODE);
    try {
      return value == null ? null : UUID.fromString(value);
    } catch (IllegalArgumentException e) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST, PeerFormat.NODE + " is malformed: it must be a UUID");
    }
  }

  private static HeldBlocks.Wanted wanted(HttpHeaders headers) throws Refusal {
    String value = headers.get(PeerFormat.WANTED);
    try {
      return value == null ? HeldBlocks.Wanted.NOTHING : PeerFormat.wanted(value);
    } catch (IllegalArgumentException e) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST,
          PeerFormat.WANTED + " is malformed: it must be BLOCK,...;BLOCK,...");
    }
  }

  boolean isHead() {
    return method.equals(HttpMethod.HEAD);
  }
}
