package io.pmfs.cluster.peers;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.InstantSource;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * Signs requests to one server, and verifies them there: an HMAC-SHA256 (RFC 2104) over the
 * request, its time, a nonce and the server's instance. The layout is in docs/formats.md.
 * Thread-safe.
 */
public final class RequestSignature {
  public static final String BODY_HASH = "Pmfs-Body-Sha256";

  public static final String EXPECTED = "Pmfs-Expected";

  /** Answer header: the server's time, signed for the one request that it refuses. */
  public static final String CLOCK = "Pmfs-Clock";

  /**
   * Limit of the difference between a signature's time and the server's clock: the drift of the
   * clocks since their difference was learned, plus the request's delay.
   */
  public static final long MAX_SKEW_MILLIS = 60_000;

  private static final long MAX_FUTURE_MILLIS = 86_400_000;
  private static final int MAX_CLIENTS = 1024;
  private static final Pattern HEADER =
      Pattern.compile(
          "PMFS1 time=(\\d{1,18}), nonce=([0-9a-f]{16})-(\\d{1,18}), mac=([0-9a-f]{64})");
  private static final Pattern CLOCK_VALUE =
      Pattern.compile("time=(\\d{1,18}), mac=([0-9a-f]{64})");
  private static final HexFormat HEX = HexFormat.of();

  private final ThreadLocal<Mac> macs;
  private final long instance;
  private final InstantSource clock;
  private final String client;
  private final AtomicLong sequence = new AtomicLong();

  /** The known difference to the server's clock; positive if the server's is ahead. */
  private volatile long aheadMillis;

  private final ReplayWindows seen = new ReplayWindows(MAX_CLIENTS, 2 * MAX_SKEW_MILLIS + 1);

  /**
   * For requests to one server.
   *
   * @param key shared by all nodes
   * @param instance the instance of the server
   */
  public RequestSignature(byte[] key, long instance, InstantSource clock) {
    SecretKeySpec secret = new SecretKeySpec(key, "HmacSHA256");
    this.macs = ThreadLocal.withInitial(() -> mac(secret));
    this.instance = instance;
    this.clock = clock;
    byte[] id = new byte[Long.BYTES];
    new SecureRandom().nextBytes(id);
    this.client = HEX.formatHex(id);
  }

  /** The server's instance. */
  public long instance() {
    return instance;
  }

  private static Mac mac(SecretKeySpec secret) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(secret);
      return mac;
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime lacks HmacSHA256", e);
    }
  }

  /** The SHA-256 of a body in hex. */
  public static String hash(byte[] body) {
    try {
      return HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(body));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime lacks SHA-256", e);
    }
  }

  /** Adds the signature to a request's otherwise complete headers; returns its nonce. */
  public String sign(String method, String target, HttpHeaders headers) {
    long time = clock.millis() + aheadMillis;
    String nonce = client + "-" + sequence.getAndIncrement();
    String mac = HEX.formatHex(mac(method, target, headers, Long.toString(time), nonce));
    headers.set(
        HttpHeaderNames.AUTHORIZATION, "PMFS1 time=" + time + ", nonce=" + nonce + ", mac=" + mac);
    return nonce;
  }

  /** The difference to the server's clock; negative if the server's is behind. */
  public long aheadMillis() {
    return aheadMillis;
  }

  /**
   * Adopts the server's clock, if the answer proves to be from the server and recent: it is signed
   * with the nonce of the request that it refuses.
   *
   * @param value of the header {@link #CLOCK}
   * @param nonce of that request
   * @return whether the request may be accepted if it is signed again
   */
  public boolean learn(@Nullable String value, String nonce) {
    Matcher fields = CLOCK_VALUE.matcher(value == null ? "" : value);
    if (!fields.matches()
        || !MessageDigest.isEqual(
            clockMac(fields.group(1), nonce), HEX.parseHex(fields.group(2)))) {
      return false;
    }
    aheadMillis = Long.parseLong(fields.group(1)) - clock.millis();
    return true;
  }

  private byte[] clockMac(String time, String nonce) {
    String text = "PMFS1-CLOCK\n" + time + '\n' + nonce + '\n' + Long.toHexString(instance) + '\n';
    return macs.get().doFinal(text.getBytes(ISO_8859_1));
  }

  /** Refuses a request unless it was signed for this server, is recent, and was not seen before. */
  public void verify(String method, String target, HttpHeaders headers) throws Refusal {
    String header = headers.get(HttpHeaderNames.AUTHORIZATION);
    if (header == null) {
      throw refusal("the request is not signed");
    }
    Matcher fields = HEADER.matcher(header);
    if (!fields.matches()) {
      throw refusal("the signature is malformed");
    }
    String nonce = fields.group(2) + "-" + fields.group(3);
    byte[] expected = mac(method, target, headers, fields.group(1), nonce);
    if (!MessageDigest.isEqual(expected, HEX.parseHex(fields.group(4)))) {
      throw refusal(
          "the signature is wrong: the sender has another secret, or signed the request for"
              + " another server");
    }
    long now = clock.millis();
    long skew = Long.parseLong(fields.group(1)) - now;
    long id = Long.parseUnsignedLong(fields.group(2), 16);
    long number = Long.parseLong(fields.group(3));
    if (Math.abs(skew) > MAX_SKEW_MILLIS) {
      if (skew > 0) {
        // So that a recorded request cannot be sent again later, when its time has come.
        seen.isNew(id, number, now + Math.min(skew, MAX_FUTURE_MILLIS));
      }
      String time = Long.toString(now);
      throw Refusal.ofTime(
          "the signature's time is "
              + Math.abs(skew) / 1000
              + (skew > 0 ? " s ahead of" : " s behind")
              + " this server's clock; "
              + MAX_SKEW_MILLIS / 1000
              + " s are allowed: compare the clocks of both nodes",
          "time=" + time + ", mac=" + HEX.formatHex(clockMac(time, nonce)));
    }
    if (!seen.isNew(id, number, now)) {
      throw refusal(
          "the request was seen before, or is older than the requests that this server"
              + " remembers");
    }
  }

  private byte[] mac(String method, String target, HttpHeaders headers, String time, String nonce) {
    StringBuilder text = new StringBuilder(target.length() + 256);
    text.append("PMFS1\n").append(method).append('\n').append(target).append('\n');
    append(text, headers.get(HttpHeaderNames.RANGE));
    append(text, headers.get(EXPECTED));
    append(text, headers.get(HttpHeaderNames.CACHE_CONTROL));
    append(text, headers.get(BODY_HASH));
    append(text, time);
    append(text, nonce);
    append(text, Long.toHexString(instance));
    return macs.get().doFinal(text.toString().getBytes(ISO_8859_1));
  }

  /** Header values contain no line feed, so the fields stay separate. */
  private static void append(StringBuilder text, @Nullable String field) {
    text.append(field == null ? "" : field).append('\n');
  }

  private static Refusal refusal(String line) {
    return new Refusal(HttpResponseStatus.UNAUTHORIZED, line);
  }
}
