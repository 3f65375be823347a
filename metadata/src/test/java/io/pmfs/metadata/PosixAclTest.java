package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A mode by which nobody has more rights than by a list. */
final class PosixAclTest {
  private static final int OWNER = 1;
  private static final int OWNING_GROUP = 11;

  private record Entry(int tag, int rights, int id) {}

  private static byte[] bytes(List<Entry> entries) {
    ByteBuffer out =
        ByteBuffer.allocate(4 + 8 * entries.size()).order(ByteOrder.LITTLE_ENDIAN).putInt(2);
    for (Entry entry : entries) {
      out.putShort((short) entry.tag).putShort((short) entry.rights).putInt(entry.id);
    }
    return out.array();
  }

  /** acl(5), "access check algorithm", for one right. */
  private static boolean isAllowedByList(List<Entry> list, int uid, Set<Integer> gids, int right) {
    int mask = list.stream().filter(e -> e.tag == 0x10).mapToInt(e -> e.rights).findAny().orElse(7);
    for (Entry entry : list) {
      if (entry.tag == 1 && uid == OWNER) {
        return (entry.rights & right) != 0;
      }
    }
    for (Entry entry : list) {
      if (entry.tag == 2 && entry.id == uid) {
        return (entry.rights & mask & right) != 0;
      }
    }
    boolean isMember = false;
    for (Entry entry : list) {
      boolean matches =
          (entry.tag == 4 && gids.contains(OWNING_GROUP))
              || (entry.tag == 8 && gids.contains(entry.id));
      isMember |= matches;
      if (matches && (entry.rights & mask & right) != 0) {
        return true;
      }
    }
    return !isMember
        && list.stream().anyMatch(entry -> entry.tag == 0x20 && (entry.rights & right) != 0);
  }

  private static boolean isAllowedByMode(int mode, int uid, Set<Integer> gids, int right) {
    int shift = uid == OWNER ? 6 : gids.contains(OWNING_GROUP) ? 3 : 0;
    return ((mode >> shift) & right) != 0;
  }

  @Test
  void leastMode_ofAnyList_givesNobodyMore() {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    Random random = new Random(seed);
    for (int i = 0; i < 20_000; i++) {
      List<Entry> list = new ArrayList<>(List.of(new Entry(1, random.nextInt(8), -1)));
      for (int id = 2; id < 2 + random.nextInt(3); id++) {
        list.add(new Entry(2, random.nextInt(8), id));
      }
      list.add(new Entry(4, random.nextInt(8), -1));
      for (int id = 12; id < 12 + random.nextInt(3); id++) {
        list.add(new Entry(8, random.nextInt(8), id));
      }
      int mask = random.nextInt(8);
      if (list.size() > 2 || random.nextBoolean()) {
        list.add(new Entry(0x10, mask, -1));
      } else {
        mask = list.get(1).rights;
      }
      list.add(new Entry(0x20, random.nextInt(8), -1));
      int mode = 0102000 | list.get(0).rights << 6 | mask << 3 | list.get(list.size() - 1).rights;
      int least = PosixAcl.leastMode(mode, bytes(list));
      assertThat(least & ~077).isEqualTo(mode & ~077);
      for (int who = 0; who < 40; who++) {
        int uid = 1 + random.nextInt(5);
        Set<Integer> gids = new HashSet<>();
        for (int gid = 11; gid < 16; gid++) {
          if (random.nextBoolean()) {
            gids.add(gid);
          }
        }
        for (int right : new int[] {1, 2, 4}) {
          if (isAllowedByMode(least, uid, gids, right)) {
            assertThat(isAllowedByList(list, uid, gids, right))
                .as("%o for user %d of %s by %s", least, uid, gids, list)
                .isTrue();
          }
        }
      }
    }
  }

  @Test
  void leastMode_listThatSaysWhatTheModeSays_isTheMode() {
    byte[] list = bytes(List.of(new Entry(1, 6, -1), new Entry(4, 4, -1), new Entry(0x20, 4, -1)));
    assertThat(PosixAcl.leastMode(0100644, list)).isEqualTo(0100644);
  }

  @Test
  void leastMode_namedUserWithEveryRight_leavesTheOthers() {
    byte[] list =
        bytes(
            List.of(
                new Entry(1, 7, -1),
                new Entry(2, 7, 2),
                new Entry(4, 5, -1),
                new Entry(0x10, 7, -1),
                new Entry(0x20, 5, -1)));
    assertThat(PosixAcl.leastMode(040775, list)).isEqualTo(040755);
  }

  @Test
  void leastMode_malformedList_leavesTheOwnersRightsAlone() {
    byte[] good = bytes(List.of(new Entry(1, 6, -1), new Entry(4, 4, -1)));
    byte[] otherVersion = good.clone();
    otherVersion[0] = 3;
    byte[] otherTag = good.clone();
    otherTag[4] = 3;
    for (byte[] list : List.of(new byte[3], new byte[7], otherVersion, otherTag)) {
      assertThat(PosixAcl.leastMode(0104777, list)).isEqualTo(0104700);
    }
    assertThat(PosixAcl.leastMode(0100666, good)).as("no entry for others").isEqualTo(0100640);
  }

  @Test
  void withMode_maskOrGroup_takesTheBitsOfTheGroup() {
    List<Entry> named =
        List.of(
            new Entry(1, 7, -1),
            new Entry(2, 7, 2),
            new Entry(4, 5, -1),
            new Entry(0x10, 7, -1),
            new Entry(0x20, 5, -1));
    List<Entry> changed =
        List.of(
            new Entry(1, 6, -1),
            new Entry(2, 7, 2),
            new Entry(4, 5, -1),
            new Entry(0x10, 4, -1),
            new Entry(0x20, 0, -1));
    assertThat(PosixAcl.withMode(bytes(named), 0100640)).isEqualTo(bytes(changed));
    List<Entry> plain = List.of(new Entry(1, 7, -1), new Entry(4, 5, -1), new Entry(0x20, 5, -1));
    List<Entry> less = List.of(new Entry(1, 6, -1), new Entry(4, 0, -1), new Entry(0x20, 4, -1));
    assertThat(PosixAcl.withMode(bytes(plain), 0100604)).isEqualTo(bytes(less));
    assertThat(PosixAcl.withMode(new byte[3], 0100604)).isEqualTo(new byte[3]);
  }
}
