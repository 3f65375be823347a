package io.pmfs.cluster;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.metadata.FileName;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class OwnershipTest {
  private static final List<FileName> PATHS =
      IntStream.range(0, 20_000)
          .mapToObj(i -> FileName.of("train/class" + i % 37 + "/" + i))
          .toList();

  private static Member member(int number) {
    UUID id = UUID.nameUUIDFromBytes(("node" + number).getBytes(UTF_8));
    return new Member(id, number, "node" + number, "127.0.0.1", 1_000 + number);
  }

  private static List<Member> members(int count) {
    return IntStream.range(0, count).mapToObj(OwnershipTest::member).toList();
  }

  private static Ownership ownership(List<Member> members, int replicas) {
    return new Ownership(new View(members), replicas);
  }

  private static List<Member> firstOwners(Ownership ownership) {
    return PATHS.stream().map(path -> ownership.owners(path).get(0)).toList();
  }

  @Test
  void owners_givenIds_areTheseForEver() {
    // Nodes with different versions of pmfs must agree: a change here changes the protocol.
    Ownership ownership = ownership(members(5), 2);
    assertThat(
            List.of("", "a", "train/1.jpg", "train/2.jpg", "\u00e4/b").stream()
                .map(
                    path ->
                        ownership.owners(FileName.of(path)).stream().map(Member::name).toList()))
        .containsExactly(
            List.of("node0", "node1"),
            List.of("node1", "node4"),
            List.of("node0", "node1"),
            List.of("node4", "node0"),
            List.of("node3", "node1"));
  }

  @Test
  void owners_membersInAnotherOrderAndOtherwiseChanged_areTheSame() {
    List<Member> shuffled = new ArrayList<>(members(9));
    Collections.shuffle(shuffled, new Random(1));
    List<Member> restarted =
        shuffled.stream()
            .map(m -> new Member(m.id(), m.instance() + 1, m.name(), "127.0.0.2", m.port() + 1))
            .toList();
    Ownership before = ownership(members(9), 3);
    Ownership after = ownership(restarted, 3);
    assertThat(PATHS.stream().map(path -> after.owners(path).stream().map(Member::id).toList()))
        .isEqualTo(
            PATHS.stream()
                .map(path -> before.owners(path).stream().map(Member::id).toList())
                .toList());
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7})
  void owners_severalReplicas_areDistinctAndAsManyAsThereAre(int count) {
    Ownership ownership = ownership(members(count), 3);
    assertThat(PATHS)
        .allSatisfy(
            path ->
                assertThat(ownership.owners(path))
                    .doesNotHaveDuplicates()
                    .hasSize(Math.min(3, count)));
  }

  @Test
  void owners_moreReplicas_beginWithTheSame() {
    assertThat(firstOwners(ownership(members(6), 3)))
        .isEqualTo(firstOwners(ownership(members(6), 1)));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 8, 64, 512})
  void share_anyNumberOfMembers_isNearlyEqual(int count) {
    List<Member> members = members(count);
    Ownership ownership = ownership(members, 1);
    double fair = 1.0 / count;
    assertThat(members)
        .allSatisfy(
            member ->
                assertThat(ownership.share(member.id())).isCloseTo(fair, within(0.05 * fair)));
    assertThat(members.stream().mapToDouble(m -> ownership.share(m.id())).sum())
        .isCloseTo(1, within(1e-9));
  }

  @Test
  void share_pathsOfADataset_isWhatIsOwnedOfThem() {
    List<Member> members = members(8);
    Ownership ownership = ownership(members, 1);
    List<Member> owners = firstOwners(ownership);
    assertThat(members)
        .allSatisfy(
            member ->
                assertThat((double) Collections.frequency(owners, member) / PATHS.size())
                    .isCloseTo(ownership.share(member.id()), within(0.02)));
  }

  @Test
  void share_stranger_isNothing() {
    assertThat(ownership(members(3), 1).share(member(7).id())).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4, 8, 64})
  void owners_memberLeaves_fewOfTheOthersPathsMove(int count) {
    List<Member> all = members(count);
    Member leaver = all.get(count / 2);
    List<Member> rest = all.stream().filter(member -> !member.equals(leaver)).toList();
    List<Member> before = firstOwners(ownership(all, 1));
    List<Member> after = firstOwners(ownership(rest, 1));
    long moved =
        IntStream.range(0, PATHS.size())
            .filter(i -> !before.get(i).equals(leaver) && !before.get(i).equals(after.get(i)))
            .count();
    // The price of nearly equal shares; new random shares would move (count - 2)/(count - 1).
    assertThat((double) moved / PATHS.size()).isLessThan(0.12);
  }

  @Test
  void owners_secondReplicaOfALeaver_isFirstNowForMostOfItsPaths() {
    List<Member> all = members(6);
    Ownership before = ownership(all, 2);
    Ownership after = ownership(all.subList(1, 6), 2);
    List<FileName> orphans =
        PATHS.stream().filter(path -> before.owners(path).get(0).equals(all.get(0))).toList();
    long inherited =
        orphans.stream()
            .filter(path -> before.owners(path).get(1).equals(after.owners(path).get(0)))
            .count();
    assertThat((double) inherited / orphans.size()).isGreaterThan(0.5);
  }

  @Test
  void ownership_noMembersOrNoReplicas_isRefused() {
    assertThatThrownBy(() -> ownership(List.of(), 1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> ownership(members(2), 0)).isInstanceOf(IllegalArgumentException.class);
  }
}
