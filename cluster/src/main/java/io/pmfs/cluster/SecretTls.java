package io.pmfs.cluster;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.google.common.primitives.Bytes;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.net.Socket;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;
import java.util.HexFormat;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * TLS in which both sides prove that they know the secret: every member has the same key pair,
 * computed from it, and trusts no other. Names and dates in the certificate mean nothing.
 */
final class SecretTls {
  static final String PROTOCOL = "TLSv1.3";

  private static final BigInteger THREE = BigInteger.valueOf(3);

  /** AlgorithmIdentifier of ecdsa-with-SHA256, RFC 5758, section 3.2. */
  private static final byte[] ECDSA_WITH_SHA256 =
      HexFormat.of().parseHex("300a06082a8648ce3d040302");

  private final PrivateKey privateKey;
  private final PublicKey publicKey;

  /**
   * @param label whose members are to understand each other; others with the same secret do not
   */
  SecretTls(ClusterSecret secret, String label) throws GeneralSecurityException {
    AlgorithmParameters p256 = AlgorithmParameters.getInstance("EC");
    p256.init(new ECGenParameterSpec("secp256r1"));
    ECParameterSpec curve = p256.getParameterSpec(ECParameterSpec.class);
    // FIPS 186-5, A.2.1: 64 bits more than the order has, so that no scalar is likelier.
    byte[] wide =
        Arrays.copyOf(
            Bytes.concat(secret.derive("tls 1 " + label), secret.derive("tls 2 " + label)), 40);
    BigInteger scalar =
        new BigInteger(1, wide).mod(curve.getOrder().subtract(BigInteger.ONE)).add(BigInteger.ONE);
    KeyFactory keys = KeyFactory.getInstance("EC");
    privateKey = keys.generatePrivate(new ECPrivateKeySpec(scalar, curve));
    publicKey =
        keys.generatePublic(new ECPublicKeySpec(times(scalar, curve.getGenerator(), curve), curve));
  }

  /** The Java library has no public way from a private key to its public one. */
  private static ECPoint times(BigInteger scalar, ECPoint point, ECParameterSpec curve) {
    ECPoint sum = ECPoint.POINT_INFINITY;
    for (int bit = scalar.bitLength() - 1; bit >= 0; bit--) {
      sum = plus(sum, sum, curve);
      if (scalar.testBit(bit)) {
        sum = plus(sum, point, curve);
      }
    }
    return sum;
  }

  private static ECPoint plus(ECPoint a, ECPoint b, ECParameterSpec curve) {
    if (a.equals(ECPoint.POINT_INFINITY)) {
      return b;
    }
    BigInteger p = ((ECFieldFp) curve.getCurve().getField()).getP();
    BigInteger slope;
    if (a.equals(b)) {
      BigInteger tangent =
          THREE.multiply(a.getAffineX().pow(2)).add(curve.getCurve().getA()).mod(p);
      slope = tangent.multiply(a.getAffineY().shiftLeft(1).modInverse(p)).mod(p);
    } else {
      BigInteger rise = b.getAffineY().subtract(a.getAffineY());
      slope = rise.multiply(b.getAffineX().subtract(a.getAffineX()).modInverse(p)).mod(p);
    }
    BigInteger x = slope.pow(2).subtract(a.getAffineX()).subtract(b.getAffineX()).mod(p);
    BigInteger y = slope.multiply(a.getAffineX().subtract(x)).subtract(a.getAffineY()).mod(p);
    return new ECPoint(x, y);
  }

  SSLContext context() throws GeneralSecurityException, IOException {
    char[] password = new char[0];
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setKeyEntry("pmfs", privateKey, password, new Certificate[] {certificate()});
    KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
    keys.init(store, password);
    SSLContext context = SSLContext.getInstance(PROTOCOL);
    context.init(keys.getKeyManagers(), new TrustManager[] {new SameKey(publicKey)}, null);
    return context;
  }

  /** The least that is an X.509 certificate (version 1; RFC 5280, section 4.1). */
  private X509Certificate certificate() throws GeneralSecurityException {
    byte[] commonName = der(0x30, HexFormat.of().parseHex("0603550403"), text(0x0c, "pmfs"));
    byte[] name = der(0x30, der(0x31, commonName));
    byte[] always = der(0x30, text(0x17, "700101000000Z"), text(0x18, "99991231235959Z"));
    byte[] serial = der(0x02, new byte[] {1});
    byte[] body = der(0x30, serial, ECDSA_WITH_SHA256, name, always, name, publicKey.getEncoded());
    Signature signature = Signature.getInstance("SHA256withECDSA");
    signature.initSign(privateKey);
    signature.update(body);
    byte[] signed = der(0x03, new byte[] {0}, signature.sign());
    byte[] certificate = der(0x30, body, ECDSA_WITH_SHA256, signed);
    return (X509Certificate)
        CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(certificate));
  }

  private static byte[] text(int tag, String text) {
    return der(tag, text.getBytes(US_ASCII));
  }

  /** A value in the Distinguished Encoding Rules of X.690, of less than 64 KiB. */
  private static byte[] der(int tag, byte[]... parts) {
    byte[] content = Bytes.concat(parts);
    int size = content.length;
    byte[] head =
        size < 128
            ? new byte[] {(byte) tag, (byte) size}
            : new byte[] {(byte) tag, (byte) 0x82, (byte) (size >> 8), (byte) size};
    if (size >= 128 && size < 256) {
      head = new byte[] {(byte) tag, (byte) 0x81, (byte) size};
    }
    return Bytes.concat(head, content);
  }

  /** Trusts one key; that the other side has its private half is for TLS to see. */
  private static final class SameKey extends X509ExtendedTrustManager {
    private final byte[] encoded;

    SameKey(PublicKey key) {
      encoded = key.getEncoded();
    }

    private void check(X509Certificate[] chain) throws CertificateException {
      if (chain.length == 0 || !Arrays.equals(encoded, chain[0].getPublicKey().getEncoded())) {
        throw new CertificateException("the other side has another cluster secret");
      }
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
        throws CertificateException {
      check(chain);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
        throws CertificateException {
      check(chain);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return new X509Certificate[0];
    }
  }
}
