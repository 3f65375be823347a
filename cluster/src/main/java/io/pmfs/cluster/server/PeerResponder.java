package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.stream.Collectors.joining;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.cluster.peers.ByteRange;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Answers requests from a {@link PeerService}, on the workers' threads. Thread-safe. */
final class PeerResponder {
  /** Up to this size, copying costs less than waiting for the send (docs/decisions/0025). */
  static final int COPIED_BYTES = 128 << 10;

  private static final Logger log = LoggerFactory.getLogger(PeerResponder.class);

  private final PeerService service;
  private final NodeRequests control;
  private final OutputRequests outputs;
  private final Executor helpers;
  private final boolean sendfile;

  /** For content larger than {@link Blocks#SIZE}, and for waiting files of a batch. */
  private final AnswerMemory memory;

  PeerResponder(
      PeerService service,
      NodeRequests control,
      OutputRequests outputs,
      PeerLimits limits,
      Executor helpers,
      boolean sendfile) {
    this.service = service;
    this.control = control;
    this.outputs = outputs;
    this.helpers = helpers;
    this.sendfile = sendfile;
    this.memory = new AnswerMemory(limits.memoryMiB());
  }

  void answer(PeerRequest request, byte[] body, PeerAnswer answer) {
    if (answer.isGone()) {
      return;
    }
    try {
      switch (request.resource()) {
        case DATA -> data(request, answer);
        case BATCH -> batch(request, body, answer);
        case BLOCKS ->
            small(
                answer,
                service.blocks(
                    request.path(), request.expected(), request.node(), request.wanted()),
                PeerFormat::putBlocks);
        case DIRECTORY -> DirectoryAnswer.send(service, request.path(), answer);
        case STATUS -> small(answer, service.status(request.path()), PeerFormat::putStatus);
        case LINK ->
            small(
                answer,
                service.readSymbolicLink(request.path()),
                (out, target) -> out.writeBytes(target.bytes()));
        case XATTR ->
            small(answer, service.extendedAttributes(request.path()), PeerFormat::putAttributes);
        case CONTROL -> control(request, body, answer);
        case OUTPUTS -> outputs(request, body, answer);
      }
    } catch (FsException e) {
      fail(answer, () -> Refusal.of(e));
    } catch (PeerException e) {
      fail(answer, () -> Refusal.of(e, request.onlyCopies()));
    } catch (Refusal e) {
      fail(answer, () -> e);
    } catch (RuntimeException | Error e) {
      log.error("cannot answer a peer's request {} {}", request.method(), request.path(), e);
      fail(
          answer,
          () ->
              new Refusal(
                  HttpResponseStatus.INTERNAL_SERVER_ERROR,
                  "an internal error; see this node's log"));
    }
  }

  private static void fail(PeerAnswer answer, Supplier<Refusal> reason) {
    if (answer.isHeadQueued()) {
      answer.breakOff();
    } else {
      answer.refuse(reason.get(), PeerFormat.headers());
    }
  }

  private static <T> void small(PeerAnswer answer, T value, BiConsumer<ByteBuf, T> encoder) {
    ByteBuf out = Unpooled.buffer();
    encoder.accept(out, value);
    HttpHeaders headers = PeerFormat.headers();
    headers.set(HttpHeaderNames.CONTENT_TYPE, "application/octet-stream");
    answer.full(HttpResponseStatus.OK, headers, out);
  }

  private void control(PeerRequest request, byte[] body, PeerAnswer answer) {
    NodeRequests.Answer result =
        control.answer(request.method().name(), request.target(), new String(body, UTF_8));
    HttpHeaders headers = PeerFormat.headers();
    headers.set(HttpHeaderNames.CONTENT_TYPE, "application/json");
    answer.full(
        HttpResponseStatus.valueOf(result.status()),
        headers,
        Unpooled.wrappedBuffer(result.json().getBytes(UTF_8)));
  }

  private void outputs(PeerRequest request, byte[] body, PeerAnswer answer) throws Refusal {
    String name = request.target().substring(request.target().indexOf('/') + 1);
    byte[] result;
    try {
      result = outputs.answer(name, body);
    } catch (IllegalArgumentException e) {
      throw new Refusal(HttpResponseStatus.BAD_REQUEST, String.valueOf(e.getMessage()));
    }
    small(answer, result, ByteBuf::writeBytes);
  }

  private void batch(PeerRequest request, byte[] body, PeerAnswer answer) throws Refusal {
    List<PeerFormat.BatchItem> items = BatchAnswer.items(body);
    if (request.onlyCopies() && !items.stream().allMatch(PeerFormat.BatchItem::onlyCopies)) {
      throw new Refusal(
          HttpResponseStatus.BAD_REQUEST,
          "an item of an only-if-cached batch may be read from the source");
    }
    BatchAnswer.send(service, helpers, memory, items, answer);
  }

  private void data(PeerRequest request, PeerAnswer answer)
      throws FsException, PeerException, Refusal {
    PeerService.Content content =
        service.open(request.path(), request.expected(), request.onlyCopies(), request.node());
    SourceStatus status = content.status();
    checkRegular(status);
    SourceVersion version = status.attributes().version();
    if (request.expected() != null && !version.equals(request.expected())) {
      throw new Refusal(
          HttpResponseStatus.PRECONDITION_FAILED, "this node has another version of the file");
    }
    HttpHeaders headers = PeerFormat.headers();
    headers.set(HttpHeaderNames.CONTENT_TYPE, "application/octet-stream");
    headers.set(HttpHeaderNames.ACCEPT_RANGES, "bytes");
    headers.set("Pmfs-Version", PeerFormat.version(version));
    headers.set("Pmfs-Status", PeerFormat.statusHeader(status));
    if (!content.holders().isEmpty()) {
      headers.set(
          PeerFormat.HOLDERS, content.holders().stream().map(UUID::toString).collect(joining(",")));
    }
    ByteRange range;
    try {
      range = ByteRange.of(request.range(), version.size());
    } catch (Refusal e) {
      headers.set(HttpHeaderNames.CONTENT_RANGE, "bytes */" + version.size());
      answer.refuse(e, headers);
      return;
    }
    headers.set(HttpHeaderNames.CONTENT_LENGTH, range.size());
    if (request.range() != null) {
      headers.set(HttpHeaderNames.CONTENT_RANGE, range.header(version.size()));
    }
    HttpResponseStatus code =
        request.range() == null ? HttpResponseStatus.OK : HttpResponseStatus.PARTIAL_CONTENT;
    if (request.isHead()) {
      content.prove();
      answer.full(code, headers, Unpooled.EMPTY_BUFFER);
    } else {
      content(content, version.size(), range, code, headers, answer);
    }
  }

  private static void checkRegular(SourceStatus status) throws Refusal {
    if (status.attributes().type() != FileType.REGULAR) {
      throw new Refusal(HttpResponseStatus.CONFLICT, "not a regular file");
    }
  }

  private void content(
      PeerService.Content content,
      long fileSize,
      ByteRange range,
      HttpResponseStatus code,
      HttpHeaders headers,
      PeerAnswer answer)
      throws FsException, PeerException, Refusal {
    boolean isChecked = range.size() <= HttpLimits.MAX_CHECKED_BYTES;
    String recorded = isChecked ? recorded(content, fileSize, range) : null;
    if (recorded != null) {
      headers.set("Pmfs-Checksum", recorded);
    }
    if (range.size() <= COPIED_BYTES || (isChecked && recorded == null)) {
      collected(content, range, code, headers, answer);
    } else {
      streamed(content, range, code, headers, answer);
    }
  }

  /** The recorded checksums of a range; null if it has partial blocks, or one is not recorded. */
  private static @Nullable String recorded(
      PeerService.Content content, long fileSize, ByteRange range) {
    boolean isWhole =
        range.from() % Blocks.SIZE == 0
            && (range.to() % Blocks.SIZE == 0 || range.to() == fileSize);
    if (!isWhole || range.size() == 0) {
      return null;
    }
    StringBuilder sums = new StringBuilder("blocks ");
    for (long at = range.from(); at < range.to(); at += Blocks.SIZE) {
      OptionalInt sum = content.checksum(Math.toIntExact(at / Blocks.SIZE));
      if (sum.isEmpty()) {
        return null;
      }
      sums.append(at == range.from() ? "" : ",").append(PeerFormat.hex(sum.getAsInt()));
    }
    return sums.toString();
  }

  private void collected(
      PeerService.Content content,
      ByteRange range,
      HttpResponseStatus code,
      HttpHeaders headers,
      PeerAnswer answer)
      throws FsException, PeerException, Refusal {
    int size = (int) range.size();
    int counted = size <= Blocks.SIZE ? 0 : size;
    memory.take(counted);
    try {
      ByteBuf out = answer.allocate(size);
      try {
        collect(content, range.from(), size, out);
      } catch (Throwable e) {
        out.release();
        throw e;
      }
      if (!headers.contains("Pmfs-Checksum")) {
        headers.set("Pmfs-Checksum", "body " + PeerFormat.hex(Blocks.checksum(out.nioBuffer())));
      }
      if (counted == 0) {
        answer.full(code, headers, out);
      } else {
        answer.begin(code, headers);
        answer.sendWhole(out);
        answer.end();
      }
    } finally {
      memory.release(counted);
    }
  }

  /** Collects a whole range in a buffer, at its writer index. */
  static void collect(PeerService.Content content, long offset, int size, ByteBuf out)
      throws FsException, PeerException {
    int start = out.writerIndex();
    if (size > 0) {
      content.copyTo(offset, size, new PeerSinks.Memory(out));
    } else {
      content.prove();
    }
    if (out.writerIndex() - start != size) {
      throw new IllegalStateException(
          (out.writerIndex() - start) + " bytes were read instead of " + size);
    }
  }

  private void streamed(
      PeerService.Content content,
      ByteRange range,
      HttpResponseStatus code,
      HttpHeaders headers,
      PeerAnswer answer)
      throws FsException, PeerException {
    try (PeerSinks.Stream sink =
        new PeerSinks.Stream(answer, sendfile, () -> answer.begin(code, headers))) {
      for (long at = range.from(); at < range.to() && !answer.isGone(); ) {
        int size = (int) Math.min(HttpLimits.MAX_CHECKED_BYTES, range.to() - at);
        content.copyTo(at, size, sink);
        at += size;
      }
      if (sink.sent() != range.size()) {
        answer.breakOff();
        return;
      }
      answer.end();
    }
  }
}
