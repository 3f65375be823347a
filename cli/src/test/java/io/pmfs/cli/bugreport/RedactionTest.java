package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
final class RedactionTest {
  private static final String SECRET = "hunter2-hunter2";

  private final Redaction redaction = new Redaction();

  @ParameterizedTest
  @ValueSource(
      strings = {
        "password=hunter2-hunter2",
        "PASSWORD : hunter2-hunter2",
        "db.password.old = 'hunter2-hunter2'",
        "cluster-secret = \"hunter2-hunter2\"",
        "{\"apiKey\":\"hunter2-hunter2\"}",
        "{\"tokens\": [\"x\", {\"a\": \"hunter2-hunter2\"}]}",
        "{\"credential\":{\"value\":\"hunter2-hunter2\",\"from\":\"x\"}}",
        "Authorization: Bearer hunter2-hunter2",
        "passphrase=correct hunter2-hunter2 staple",
        "--cluster-secret hunter2-hunter2",
        "--api-token=hunter2-hunter2",
        "https://ada:hunter2-hunter2@host/x",
        "//ada:p@hunter2-hunter2@host/share",
        "mounted s3://hunter2-hunter2@bucket",
        "-----BEGIN PRIVATE KEY-----\nhunter2-hunter2\n-----END PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2-hunter2",
        "hunter2-hunter2\nabc\n-----END EC PRIVATE KEY-----\nrest"
      })
  void of_secretsByTheirForm_removesThem(String text) {
    assertThat(redaction.of(text)).doesNotContain("hunter2").contains(Redaction.REMOVED);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "2026-11-22 INFO /lustre/imagenet mounted on /mnt/dataset",
        "    at io.pmfs.cluster.members.ClusterSecret.ofFile(ClusterSecret.java:57)",
        "give all nodes the same --cluster-secret-file",
        "{\"copies\":12,\"path\":\"/local/pmfs\"}",
        "29 1 0:25 / /mnt ro,nosuid - fuse.pmfs /lustre/x ro,user_id=0",
        "no key is known here",
        "mail ada@example.org or see https://example.org/a@b"
      })
  void of_textWithoutSecrets_leavesIt(String text) {
    assertThat(redaction.of(text)).isEqualTo(text);
  }

  @Test
  void of_valuesOfSecretVariables_removesThemInAllTheirForms() {
    String odd = "h\"u\\n ä/tér2";
    redaction.learn(
        Map.of("PMFS_CLUSTER_SECRET", SECRET + "\n", "MY_TOKEN", odd, "KEY_FILE", "/etc/the-key"));

    String clean =
        redaction.of(
            "a " + SECRET + " b h\\\"u\\\\n ä/tér2 c h%22u%5Cn%20%C3%A4%2Ft%C3%A9r2 d " + odd);

    assertThat(clean).isEqualTo("a [removed] b [removed] c [removed] d [removed]");
    assertThat(redaction.of("in /etc/the-key")).isEqualTo("in /etc/the-key");
  }

  @Test
  void learn_shortOrHarmlessVariables_removesNothing() {
    redaction.learn(Map.of("A_TOKEN", "1", "HOME", "/home/ada-lovelace"));

    assertThat(redaction.of("1 file in /home/ada-lovelace"))
        .isEqualTo("1 file in /home/ada-lovelace");
  }

  @Test
  void of_json_staysJson() {
    String json =
        "{\"a\": 1,\n\"key\": 5,\n\"password\": \"x\\\"y\",\n\"tokens\": [1, 2],\n\"b\": \"c\"}";

    assertThat(JsonParser.parseString(redaction.of(json)).getAsJsonObject().get("b").getAsString())
        .isEqualTo("c");
    assertThat(redaction.of(json)).doesNotContain("x\\");
  }

  @Test
  void of_bytesThatAreNoText_leavesThem() {
    byte[] bytes = new byte[256];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) i;
    }
    assertThat(redaction.of(bytes)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"a", "a.", "//", "key", "key=", "--", "\"", "://a", "{\"key\":[", "-----BEGIN "})
  void of_hostileText_comesToAnEnd(String unit) {
    byte[] text = unit.repeat((2 << 20) / unit.length()).getBytes(ISO_8859_1);

    byte[] redacted = redaction.of(text);

    assertThat(redacted.length).isLessThan(8 << 20);
    assertThat(new String(redacted, UTF_8)).doesNotContain("\0");
  }
}
