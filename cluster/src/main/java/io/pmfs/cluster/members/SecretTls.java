package io.pmfs.cluster.members;

import com.google.common.primitives.Bytes;
import java.io.IOException;
import java.math.BigInteger;
import java.net.Socket;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.time.Instant;
import java.util.Arrays;
import java.util.Date;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v1CertificateBuilder;
import org.bouncycastle.crypto.ec.CustomNamedCurves;
import org.bouncycastle.math.ec.ECPoint;
import org.bouncycastle.math.ec.FixedPointCombMultiplier;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/**
 * TLS in which both sides prove that they know the secret: every member derives the same key pair
 * from it, and trusts no other. Names and dates in the certificate have no meaning.
 */
final class SecretTls {
  static final String PROTOCOL = "TLSv1.3";
  private static final String CURVE = "secp256r1";

  /** No expiration date; RFC 5280, section 4.1.2.5. */
  private static final Instant END = Instant.parse("9999-12-31T23:59:59Z");

  private final PrivateKey privateKey;
  private final PublicKey publicKey;

  /**
   * @param label the name that members must share; a member with another name is refused even if it
   *     has the secret
   */
  SecretTls(ClusterSecret secret, String label) throws GeneralSecurityException {
    X9ECParameters p256 = CustomNamedCurves.getByName(CURVE);
    // FIPS 186-5, A.2.1: 64 bits more than the order has, so that all scalars are equally likely.
    byte[] wide =
        Arrays.copyOf(
            Bytes.concat(secret.derive("tls 1 " + label), secret.derive("tls 2 " + label)), 40);
    BigInteger scalar =
        new BigInteger(1, wide).mod(p256.getN().subtract(BigInteger.ONE)).add(BigInteger.ONE);
    ECPoint point = new FixedPointCombMultiplier().multiply(p256.getG(), scalar).normalize();
    AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
    parameters.init(new ECGenParameterSpec(CURVE));
    ECParameterSpec curve = parameters.getParameterSpec(ECParameterSpec.class);
    KeyFactory keys = KeyFactory.getInstance("EC");
    privateKey = keys.generatePrivate(new ECPrivateKeySpec(scalar, curve));
    publicKey =
        keys.generatePublic(
            new ECPublicKeySpec(
                new java.security.spec.ECPoint(
                    point.getAffineXCoord().toBigInteger(), point.getAffineYCoord().toBigInteger()),
                curve));
  }

  SSLContext context() throws GeneralSecurityException, IOException {
    char[] password = new char[0];
    // Stays in memory: the key derivation of PKCS12 would only delay the start by 80 to 120 ms.
    KeyStore store = KeyStore.getInstance("JKS");
    store.load(null, null);
    store.setKeyEntry("pmfs", privateKey, password, new Certificate[] {certificate()});
    KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
    keys.init(store, password);
    SSLContext context = SSLContext.getInstance(PROTOCOL);
    context.init(keys.getKeyManagers(), new TrustManager[] {new SameKey(publicKey)}, null);
    return context;
  }

  private X509Certificate certificate() throws GeneralSecurityException {
    X500Name name = new X500Name("CN=pmfs");
    try {
      ContentSigner signer = new JcaContentSignerBuilder("SHA256withECDSA").build(privateKey);
      return new JcaX509CertificateConverter()
          .getCertificate(
              new JcaX509v1CertificateBuilder(
                      name,
                      BigInteger.ONE,
                      Date.from(Instant.EPOCH),
                      Date.from(END),
                      name,
                      publicKey)
                  .build(signer));
    } catch (OperatorCreationException e) {
      throw new GeneralSecurityException(e);
    }
  }

  /** Trusts one public key; TLS verifies that the other side has the private key. */
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
