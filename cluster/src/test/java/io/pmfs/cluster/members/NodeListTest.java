package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class NodeListTest {
  @TempDir Path directory;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "node1 | node1",
        "node1,node2 | node1 node2",
        "node[1-3] | node1 node2 node3",
        "node[001-003,7],other | node001 node002 node003 node7 other",
        "node[08-11] | node08 node09 node10 node11",
        "node[8-11] | node8 node9 node10 node11",
        "node[99-101] | node99 node100 node101",
        "node[098-101] | node098 node099 node100 node101",
        "rack[1-2]n[01-02]x | rack1n01x rack1n02x rack2n01x rack2n02x",
        "r[0-1]c[0-1]s[0-1] | r0c0s0 r0c0s1 r0c1s0 r0c1s1 r1c0s0 r1c0s1 r1c1s0 r1c1s1",
        "a[1][2] | a12",
        "[1-2]x | 1x 2x",
        "n[5] | n5",
        "n[5,5,4-5] | n5 n4",
        "gpu-a[1-2].example.org,login | gpu-a1.example.org gpu-a2.example.org login",
        "c1,c1 | c1",
        "n[00-00] | n00",
        "n[000000001-000000002] | n000000001 n000000002",
      })
  void ofSlurm_list_isExpanded(String text, String hosts) {
    assertThat(NodeList.ofSlurm(text)).containsExactly(hosts.split(" "));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "'' | empty entry at character 1",
        "a,,b | empty entry at character 3",
        "a, | empty entry at character 3",
        "node[1-3 | a [ without a ] at character 5",
        "node1-3] | a ] without a [ at character 8",
        "n[1-[2]] | a [ within another at character 5",
        "n[] | a number of one to nine digits is expected at character 3",
        "n[1,] | a number of one to nine digits is expected at character 5",
        "n[1-] | a number of one to nine digits is expected at character 5",
        "n[-3] | a number of one to nine digits is expected at character 3",
        "n[1-2-3] | a number of one to nine digits is expected at character 5",
        "n[a-b] | a number of one to nine digits is expected at character 3",
        "n[1 - 2] | a number of one to nine digits is expected at character 3",
        "n[9999999999] | a number of one to nine digits is expected at character 3",
        "n[3-1] | a range that runs backwards at character 3",
        "n[0-999999999] | more than 65536 hosts at character 3",
        "n[0-65535,1] | more than 65536 hosts at character 11",
        "n[0-999]x[0-999] | more than 65536 hosts at character 10",
        "n[0-65535],x | character 12: more than 65536 hosts",
        "a;b | character 1: 'a;b' is not a host name or address",
      })
  void ofSlurm_wrongList_isRefusedWithThePosition(String text, String message) {
    assertThatThrownBy(() -> NodeList.ofSlurm(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  void ofSlurm_asManyAsAllowed_isExpanded() {
    assertThat(NodeList.ofSlurm("n[00000-65535]")).hasSize(65_536).endsWith("n65535");
  }

  @Test
  void ofCommas_namesAndAddresses_areTaken() {
    assertThat(NodeList.ofCommas("a, b.example.org,10.0.0.1,::1,fe80::1%eth0,a"))
        .containsExactly("a", "b.example.org", "10.0.0.1", "::1", "fe80::1%eth0");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "a,,b | empty entry at character 3",
        "a,b c | character 3: 'b c' is not a host name or address",
        "a[1-2] | character 1: 'a[1-2]' is not a host name or address",
        "-x | '-x' is not a host name or address",
      })
  void ofCommas_wrongList_isRefusedWithThePosition(String text, String message) {
    assertThatThrownBy(() -> NodeList.ofCommas(text)).hasMessageContaining(message);
  }

  @Test
  void ofFile_commentsAndBlankLines_areLeftOut() throws IOException {
    Path file = directory.resolve("nodes");
    Files.writeString(file, "# all\n\n a \nb # the second\r\n\t\nc");
    assertThat(NodeList.ofFile(file)).isEqualTo(List.of("a", "b", "c"));
  }

  @Test
  void ofFile_wrongLine_isNamed() throws IOException {
    Path file = directory.resolve("nodes");
    Files.writeString(file, "a\nb c\n");
    assertThatThrownBy(() -> NodeList.ofFile(file))
        .hasMessage(file + ", line 2: 'b c' is not a host name or address");
  }

  @Test
  void ofFile_noHostsNoTextOrNoFile_isRefused() throws IOException {
    Path file = directory.resolve("nodes");
    assertThatThrownBy(() -> NodeList.ofFile(file)).hasMessageContaining("cannot be read");
    Files.writeString(file, "# nobody\n");
    assertThatThrownBy(() -> NodeList.ofFile(file)).hasMessageContaining("names no host");
    Files.write(file, new byte[] {'a', (byte) 0xff});
    assertThatThrownBy(() -> NodeList.ofFile(file)).hasMessageContaining("UTF-8");
  }

  @Test
  void ofFile_withoutEnd_isReadUpToALimit() {
    assertThatThrownBy(() -> NodeList.ofFile(Path.of("/dev/zero")))
        .hasMessageContaining("has more than 16777216 bytes");
  }
}
