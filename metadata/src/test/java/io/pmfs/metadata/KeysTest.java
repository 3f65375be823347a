package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Values.NameValue;
import io.pmfs.metadata.Values.Superblock;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Golden bytes of every key and value; docs/formats.md describes the same. */
final class KeysTest {
  private static final FileName NAME = FileName.of(new byte[] {'a', (byte) 0xff});
  private static final Instant TIME = Instant.ofEpochSecond(-2, 3);
  private static final String TIME_HEX = "fffffffffffffffe 00000003";

  private static void assertHex(byte[] bytes, String hex) {
    assertThat(HexFormat.of().formatHex(bytes)).isEqualTo(hex.replace(" ", ""));
  }

  private static byte[] hex(String hex) {
    return HexFormat.of().parseHex(hex.replace(" ", ""));
  }

  @Test
  void keys_golden() {
    assertHex(Keys.SUPERBLOCK, "01");
    assertHex(Keys.OPENING, "02");
    assertHex(Keys.NEXT_NUMBER, "03");
    assertHex(Keys.CLEAN_STOP, "04");
    assertHex(Keys.counter("né"), "05 6ec3a9");
    assertHex(Keys.number(0x0102030405060708L), "0102030405060708");
    assertHex(Keys.name(258, NAME), "0000000000000102 61ff");
    assertHex(Keys.position(258, 3), "0000000000000102 0000000000000003");
    assertHex(Keys.link(new FileIdentity(-1, 5)), "ffffffffffffffff 0000000000000005");
    assertHex(Keys.alias(7, 258, NAME), "0000000000000007 0000000000000102 61ff");
    assertHex(Keys.copy(7, "pm"), "0000000000000007 706d");
  }

  @Test
  void keys_decoded_giveTheirParts() {
    assertThat(Keys.first(Keys.copy(7, "pm"))).isEqualTo(7);
    assertThat(Keys.tier(Keys.copy(7, "pmé"))).isEqualTo("pmé");
    assertThat(Keys.name(Keys.name(258, NAME))).isEqualTo(NAME);
    assertThat(Keys.second(Keys.position(258, 3))).isEqualTo(3);
    assertThat(Keys.second(Keys.alias(7, 258, NAME))).isEqualTo(258);
    assertThat(Keys.aliasName(Keys.alias(7, 258, NAME))).isEqualTo(NAME);
  }

  @Test
  void superblock_golden() {
    byte[] value = Values.superblock(new Superblock(1, "/dé"));
    assertHex(value, "706d6673 00000001 2f64c3a9");
    assertThat(Values.superblock(value)).isEqualTo(new Superblock(1, "/dé"));
    assertThat(Values.superblock(hex("706d6674 00000001"))).isNull();
    assertThat(Values.superblock(hex("706d6673"))).isNull();
  }

  @Test
  void numberAndBytes_golden() {
    assertHex(Values.number(-2), "01 fffffffffffffffe");
    assertThat(Values.number(hex("01 fffffffffffffffe"))).isEqualTo(-2L);
    assertHex(Values.bytes(new byte[] {5}), "01 05");
    assertThat(Values.content(hex("01 05"))).containsExactly(5);
  }

  @Test
  void lostName_golden() {
    assertHex(Keys.lostName(7), "08 0000000000000007");
    assertThat(Keys.lostName(hex("08 0000000000000007"))).isEqualTo(7);
    assertThat(Keys.lostName(hex("05 0000000000000007"))).isNegative();
    assertThat(Keys.lostName(hex("08"))).isNegative();
  }

  private static final String ATTRIBUTES_HEX =
      "000081a4 00000002 000003e8 000003e9 0000000000000801 0000000000000009 0000000000000008"
          + TIME_HEX
          + TIME_HEX
          + "0000000000000000 3b9ac9ff";

  private static Inode inode(@Nullable Listing listing) {
    Instant change = Instant.ofEpochSecond(0, 999_999_999);
    Attributes attributes = new Attributes(0100644, 2, 1000, 1001, 0x801, 9, 8, TIME, TIME, change);
    return new Inode(7, new FileIdentity(1, 2), 3, NAME, 4, listing, attributes);
  }

  @Test
  void inode_golden() {
    String start = "01 0000000000000001 0000000000000002 0000000000000003 00000004";
    String unlisted = start + "00" + ATTRIBUTES_HEX + "61ff";
    assertHex(Values.inode(inode(null)), unlisted);
    assertThat(Values.inode(7, hex(unlisted))).isEqualTo(inode(null));
    String listed = start + "01 00000006" + TIME_HEX + ATTRIBUTES_HEX + "61ff";
    assertHex(Values.inode(inode(new Listing(6, TIME))), listed);
    assertThat(Values.inode(7, hex(listed))).isEqualTo(inode(new Listing(6, TIME)));
  }

  @Test
  void nameAndListed_golden() {
    NameValue name = new NameValue(7, FileType.SYMBOLIC_LINK, 3, 0x500000001L);
    String nameHex = "01 0000000000000007 0a 0000000000000003 0000000500000001";
    assertHex(Values.name(name), nameHex);
    assertThat(Values.name(hex(nameHex))).isEqualTo(name);
    String listedHex = "01 0000000000000007 04 61ff";
    assertHex(Values.listed(7, FileType.DIRECTORY, NAME), listedHex);
    assertThat(Values.listed(3, hex(listedHex)))
        .isEqualTo(new DirectoryEntry(3, NAME, 7, FileType.DIRECTORY));
  }

  @Test
  void extendedAttributes_golden() {
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    attributes.put(NAME, new byte[] {1, 2, 3});
    attributes.put(FileName.of("b"), new byte[0]);
    String golden = "00000002 61ff 00000003 010203 00000001 62 00000000";
    assertHex(Values.extendedAttributes(attributes), golden);
    Map<FileName, byte[]> decoded = Values.extendedAttributes(hex(golden));
    assertThat(decoded).isNotNull().containsOnlyKeys(attributes.keySet());
    assertHex(Values.extendedAttributes(Map.of()), "");
    assertThat(Values.extendedAttributes(hex(""))).isNotNull().isEmpty();
    assertThat(Values.extendedAttributes(hex("7fffffff 61"))).isNull();
    assertThat(Values.extendedAttributes(hex("ffffffff 61"))).isNull();
  }

  @Test
  void dated_golden() {
    Instant change = Instant.ofEpochSecond(3, 4);
    String golden = "01 0000000000000003 00000004 02000000";
    assertHex(Keys.accessList(7), "0000000000000007 01");
    byte one = 1;
    assertHex(Values.dated(one, change, new byte[] {2, 0, 0, 0}), golden);
    assertThat(Values.datedContent(one, change, hex(golden))).containsExactly(2, 0, 0, 0);
    assertThat(Values.datedContent(one, change.plusNanos(1), hex(golden))).isNull();
    assertThat(Values.datedContent(one, change, hex("01 00"))).isNull();
    assertThat(Values.datedContent(one, change, hex("02 0000000000000003 00000004"))).isNull();
  }

  private static final String COPY_HEX =
      "04 01 00000001 0000000000000009"
          + TIME_HEX
          + "0000000000001000 00100000 0000000000000005 0000000000000200 01020304 ffffffff";

  private static CopyRecord copy() {
    return new CopyRecord(
        "pm",
        1,
        new SourceVersion(9, TIME),
        4096,
        1 << 20,
        Checksums.of(0x01020304, -1),
        true,
        new Extent(5, 512, 4096));
  }

  @Test
  void copy_golden() {
    assertHex(Values.copy(copy()), COPY_HEX);
    assertThat(Values.copy("pm", hex(COPY_HEX))).isEqualTo(copy());
  }

  @Test
  void copy_fileOfItsOwn_hasNoExtent() {
    CopyRecord file = copy().at(null);

    assertHex(Values.copy(file), COPY_HEX.replace("05 0000000000000200", "00 0000000000000000"));
    assertThat(Values.copy("pm", Values.copy(file))).isEqualTo(file);
  }

  /** Nobody knows which of them were made of a file that a node saw as it was earlier. */
  @Test
  void copy_ofAnEarlierVersion_isNull() {
    assertThat(Values.copy("pm", hex(COPY_HEX.replace("04 01", "03 01")))).isNull();
  }

  @Test
  void copy_impossibleExtent_isNull() {
    for (String extent :
        new String[] {
          "0000000000000000 0000000000000200",
          "ffffffffffffffff 0000000000000200",
          "0000000000000005 ffffffffffffffff",
          "0000000000000005 7ffffffffffffff0"
        }) {
      String value = COPY_HEX.replace("0000000000000005 0000000000000200", extent);
      assertThat(Values.copy("pm", hex(value))).isNull();
    }
  }

  @Test
  void copy_anyByteChanged_isNullOrAnotherRecord() {
    byte[] value = Values.copy(copy());
    for (int at = 0; at < value.length; at++) {
      for (int change = 1; change < 256; change++) {
        byte[] damaged = value.clone();
        damaged[at] ^= (byte) change;
        assertThat(Values.copy("pm", damaged)).isNotEqualTo(copy());
      }
    }
  }

  @Test
  void values_cutShort_areNullOrShorter() {
    byte[] inode = Values.inode(inode(new Listing(6, TIME)));
    byte[] name = Values.name(new NameValue(7, FileType.FIFO, 3, 1));
    byte[] copy = Values.copy(copy());
    for (int size = 0; size < inode.length - NAME.size(); size++) {
      assertThat(Values.inode(7, Arrays.copyOf(inode, size))).isNull();
    }
    for (int size = 0; size < name.length; size++) {
      assertThat(Values.name(Arrays.copyOf(name, size))).isNull();
    }
    for (int size = 0; size < copy.length; size++) {
      assertThat(Values.copy("pm", Arrays.copyOf(copy, size))).isNotEqualTo(copy());
    }
    assertThat(Values.copy("pm", Arrays.copyOf(copy, copy.length - 1))).isNull();
    assertThat(Values.name(Arrays.copyOf(name, name.length + 1))).isNull();
  }

  @Test
  void values_randomBytes_neverThrow() {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int i = 0; i < 100_000; i++) {
      byte[] value = new byte[random.nextInt(180)];
      random.nextBytes(value);
      if (value.length > 0) {
        value[0] = 1;
      }
      assertThat(decodeAll(value)).hasSize(8);
    }
  }

  private static List<@Nullable Object> decodeAll(byte[] value) {
    List<@Nullable Object> decoded = new ArrayList<>();
    decoded.add(Values.superblock(value));
    decoded.add(Values.number(value));
    decoded.add(Values.inode(1, value));
    decoded.add(Values.name(value));
    decoded.add(Values.listed(1, value));
    decoded.add(Values.extendedAttributes(value));
    decoded.add(Values.datedContent((byte) 1, Instant.EPOCH, value));
    decoded.add(Values.copy("pm", value));
    return decoded;
  }

  @Test
  void records_random_areReadBackAndKeepTheirOrder() {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int i = 0; i < 20_000; i++) {
      Instant time = Instant.ofEpochSecond(random.nextInt(), random.nextInt(1_000_000_000));
      int[] sums = random.ints(random.nextInt(20)).toArray();
      SourceVersion version = new SourceVersion(random.nextLong(), time);
      CopyRecord copy =
          new CopyRecord(
              "t",
              random.nextInt(),
              version,
              random.nextLong(),
              random.nextInt(),
              Checksums.of(sums),
              random.nextBoolean(),
              null);
      assertThat(Values.copy("t", Values.copy(copy))).isEqualTo(copy);
      long directory = random.nextLong() >>> 1;
      long other = random.nextLong() >>> 1;
      assertThat(Integer.signum(Arrays.compareUnsigned(Keys.number(directory), Keys.number(other))))
          .isEqualTo(Long.compare(directory, other));
    }
  }
}
