package io.pmfs.fuse.protocol;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.source.StoreStatistics;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.HexFormat;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Golden bytes, derived by hand from linux/fuse.h; little-endian machines only. */
final class KernelProtocolTest {
  private static final Inode INODE =
      new Inode(
          0x1122334455667788L,
          new FileIdentity(7, 8),
          1,
          FileName.of("name"),
          9,
          null,
          new Attributes(
              0100644,
              3,
              1000,
              0x80000001,
              // makedev(0x123, 0x45678) as glibc composes it.
              0x45612378L,
              0x0102030405060708L,
              0x1112,
              Instant.ofEpochSecond(0x61, 0x0a),
              Instant.ofEpochSecond(-1, 999_999_999),
              Instant.ofEpochSecond(0x63, 0x0c)));

  /** A struct fuse_attr, field by field. */
  private static final String ATTR =
      "8877665544332211" // ino
          + "0807060504030201" // size
          + "1211000000000000" // blocks
          + "6100000000000000" // atime
          + "ffffffffffffffff" // mtime
          + "6300000000000000" // ctime
          + "0a000000" // atimensec
          + "ffc99a3b" // mtimensec
          + "0c000000" // ctimensec
          + "a4810000" // mode
          + "03000000" // nlink
          + "e8030000" // uid
          + "01000080" // gid
          + "78236145" // rdev
          + "00100000" // blksize
          + "00000000"; // flags

  private final ByteBuffer out = ByteBuffer.allocate(1024).order(ByteOrder.nativeOrder());

  @BeforeEach
  void fillWithGarbage() {
    Assumptions.assumeTrue(
        ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN, "the golden bytes are little-endian");
    for (int i = 0; i < out.capacity(); i++) {
      out.put(i, (byte) 0xee);
    }
  }

  private void assertWritten(int at, String golden) {
    int size = golden.length() / 2;
    byte[] written = new byte[size];
    out.get(at, written);
    assertThat(HexFormat.of().formatHex(written)).isEqualTo(golden);
    assertThat(out.get(at - 1)).as("before it").isEqualTo((byte) 0xee);
    assertThat(out.get(at + size)).as("behind it").isEqualTo((byte) 0xee);
  }

  @Test
  void putAttributes_isStructFuseAttr() {
    KernelProtocol.putAttributes(out, 8, INODE.number(), INODE.attributes());
    assertWritten(8, ATTR);
  }

  @Test
  void putAttributesReply_isStructFuseAttrOut() {
    KernelProtocol.putAttributesReply(out, 16, INODE, 0x1234);
    assertWritten(
        16,
        "3412000000000000" // attr_valid
            + "00000000" // attr_valid_nsec
            + "00000000" // dummy
            + ATTR);
  }

  @Test
  void putEntry_isStructFuseEntryOut() {
    KernelProtocol.putEntry(out, 16, INODE.number(), INODE, 0x1234);
    assertWritten(
        16,
        "8877665544332211" // nodeid
            + "0000000000000000" // generation
            + "3412000000000000" // entry_valid
            + "3412000000000000" // attr_valid
            + "00000000" // entry_valid_nsec
            + "00000000" // attr_valid_nsec
            + ATTR);
  }

  @Test
  void putNoEntry_isAnEntryWithoutNode() {
    KernelProtocol.putNoEntry(out, 16, 0x1234);
    assertWritten(16, "00".repeat(16) + "3412000000000000" + "00".repeat(128 - 24));
  }

  @Test
  void putStatx_isStructFuseStatxOut() {
    KernelProtocol.putStatx(out, 16, INODE, 0x1234);
    assertWritten(
        16,
        "3412000000000000" // attr_valid
            + "00000000" // attr_valid_nsec
            + "00000000" // flags
            + "00".repeat(16) // spare
            + "ff070000" // mask
            + "00100000" // blksize
            + "0000000000000000" // attributes
            + "03000000" // nlink
            + "e8030000" // uid
            + "01000080" // gid
            + "a481" // mode
            + "0000"
            + "8877665544332211" // ino
            + "0807060504030201" // size
            + "1211000000000000" // blocks
            + "0000000000000000" // attributes_mask
            + "6100000000000000" // atime
            + "0a000000"
            + "00000000"
            + "00".repeat(16) // btime
            + "6300000000000000" // ctime
            + "0c000000"
            + "00000000"
            + "ffffffffffffffff" // mtime
            + "ffc99a3b"
            + "00000000"
            + "23010000" // rdev_major
            + "78560400" // rdev_minor
            + "0000000000000000" // dev
            + "00".repeat(14 * 8)); // spare2
  }

  @Test
  void putStatistics_isStructFuseKstatfs() {
    KernelProtocol.putStatistics(
        out, 16, new StoreStatistics(4096, 8192, 0x0102030405L, 0x12, 0x13, 0x14, 0x15, 255));
    assertWritten(
        16,
        "0504030201000000" // blocks
            + "1200000000000000" // bfree
            + "1300000000000000" // bavail
            + "1400000000000000" // files
            + "1500000000000000" // ffree
            + "00100000" // bsize
            + "ff000000" // namelen
            + "00200000" // frsize
            + "00000000" // padding
            + "00".repeat(24)); // spare
  }

  @Test
  void putDirent_isStructFuseDirentPaddedToEight() {
    KernelProtocol.putDirent(out, 16, 0x0807060504030201L, 0x1122, 4, FileName.of("abc"));
    assertWritten(
        16,
        "0102030405060708" // ino
            + "2211000000000000" // off
            + "03000000" // namelen
            + "04000000" // type
            + "6162630000000000");
  }

  @Test
  void direntSize_isTheNextMultipleOfEight() {
    assertThat(KernelProtocol.direntSize(1)).isEqualTo(32);
    assertThat(KernelProtocol.direntSize(8)).isEqualTo(32);
    assertThat(KernelProtocol.direntSize(9)).isEqualTo(40);
    assertThat(KernelProtocol.direntSize(255)).isEqualTo(280);
  }

  @Test
  void request_ofALookup_isReadFromItsFields() throws Exception {
    byte[] bytes =
        HexFormat.of()
            .parseHex(
                "2c000000" // len
                    + "01000000" // opcode
                    + "0200000000000080" // unique, resent
                    + "0500000000000000" // nodeid
                    + "e8030000e903000067120000" // uid, gid, pid
                    + "0000" // total_extlen
                    + "0000"
                    + "61620000"); // "ab"
    KernelRequest request =
        new KernelRequest(ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()));
    assertThat(request.hasHeader()).isTrue();
    assertThat(request.isWhole()).isTrue();
    assertThat(request.opcode()).isEqualTo(Opcode.LOOKUP);
    assertThat(request.unique()).isEqualTo(0x8000000000000002L);
    assertThat(request.inode()).isEqualTo(5);
    assertThat(request.nameAt(40).bytes()).isEqualTo("ab".getBytes(UTF_8));
  }
}
