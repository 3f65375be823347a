package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

final class RollCallTest {
  private static final Instant BEGAN = Instant.ofEpochSecond(1_000);
  private static final Member ONE = member("node01", 1);
  private static final Member TWO = member("node02", 2);
  private static final Member THREE = member("node03", 3);
  private static final List<String> LIST = List.of("node01", "node02", "node03", "node04");

  private static Member member(String name, int number) {
    UUID id = UUID.nameUUIDFromBytes(name.getBytes(UTF_8));
    return new Member(id, 1, name, "10.0.0." + number, 20_000);
  }

  private static Member again(Member member) {
    return new Member(
        member.id(), member.instance() + 1, member.name(), member.host(), member.port());
  }

  private static Instant at(int seconds) {
    return BEGAN.plusSeconds(seconds);
  }

  private static Roll.Absence lost(Member member, int seconds) {
    return new Roll.Absence(member.name(), member.host(), at(seconds), true);
  }

  private static Roll.Absence never(String host) {
    return new Roll.Absence(host, null, BEGAN, false);
  }

  private static RollCall call(String... hosts) {
    return new RollCall(List.of(hosts), BEGAN);
  }

  private static RollCall listed() {
    RollCall call = new RollCall(LIST, BEGAN);
    call.isHere("node01", "10.0.0.1");
    return call;
  }

  @Test
  void listedHost_thatNeverJoined_isMissingSinceTheMountBegan() {
    RollCall call = listed();
    assertThat(call.roll())
        .isEqualTo(new Roll(4, List.of(never("node02"), never("node03"), never("node04"))));
    call.look(List.of(ONE, TWO, THREE), List.of(), at(5));
    assertThat(call.roll()).isEqualTo(new Roll(4, List.of(never("node04"))));
  }

  @Test
  void member_thatWasLost_isMissingSinceThenUntilItIsBack() {
    RollCall call = call();
    call.look(List.of(ONE, TWO, THREE), List.of(), at(1));
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of()));
    assertThat(call.look(List.of(ONE), List.of(), at(2))).isTrue();
    assertThat(call.look(List.of(ONE), List.of(), at(3))).isFalse();
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of(lost(TWO, 2), lost(THREE, 2))));
    // Its supervisor has started another daemon.
    call.look(List.of(ONE, again(TWO)), List.of(), at(4));
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of(lost(THREE, 2))));
  }

  @Test
  void member_thatSaidGoodbye_isNotMissing() {
    for (RollCall call : List.of(call(), listed())) {
      call.look(List.of(ONE, TWO, THREE), List.of(), at(1));
      call.look(List.of(ONE, THREE), List.of(TWO), at(2));
      assertThat(call.roll().missing()).noneMatch(one -> one.node().equals("node02"));
      // It is mounted again, and crashes this time.
      call.look(List.of(ONE, again(TWO), THREE), List.of(TWO), at(3));
      call.look(List.of(ONE, THREE), List.of(TWO), at(4));
      assertThat(call.roll().missing()).contains(lost(TWO, 4));
      // Goodbyes that come late count as well.
      call.look(List.of(ONE, THREE), List.of(again(TWO)), at(5));
      assertThat(call.roll().missing()).noneMatch(one -> one.node().equals("node02"));
    }
  }

  @Test
  void listedHost_whoseNodeLeftBeforeThisOneCame_isNotMissing() {
    RollCall call = listed();
    call.look(List.of(ONE, THREE), List.of(TWO), at(1));
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of(never("node04"))));
  }

  @Test
  void node_thatLostItsId_isNotMissingBesideItself() {
    RollCall call = listed();
    call.look(List.of(ONE, TWO), List.of(), at(1));
    call.look(List.of(ONE), List.of(), at(2));
    Member reinstalled = new Member(UUID.randomUUID(), 7, TWO.name(), TWO.host(), TWO.port());
    call.look(List.of(ONE, reinstalled), List.of(), at(3));
    assertThat(call.roll()).isEqualTo(new Roll(4, List.of(never("node03"), never("node04"))));
  }

  @Test
  void hosts_ofTheList_areFoundByNameWithoutDomainByAddressAndByWhatTheyResolveTo() {
    RollCall call = call("NODE01.cluster.example", "10.0.0.2", "data3");
    call.isHere("node01", "10.0.0.1");
    call.look(List.of(ONE, TWO, THREE), List.of(), at(1));
    assertThat(call.isUnclear()).isTrue();
    assertThat(call.neverSeen()).containsExactly("data3");
    call.resolved("data3", "10.0.0.3");
    assertThat(call.isUnclear()).isFalse();
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of()));
    call.look(List.of(ONE), List.of(), at(2));
    assertThat(call.roll().missing())
        .containsExactly(
            new Roll.Absence("10.0.0.2", "10.0.0.2", at(2), true),
            new Roll.Absence("data3", "10.0.0.3", at(2), true));
  }

  @Test
  void nextDaemon_knowsWhoIsMissing() {
    RollCall call = listed();
    call.look(List.of(ONE, TWO, THREE), List.of(), at(1));
    call.look(List.of(ONE), List.of(THREE), at(2));
    RollCall next = Objects.requireNonNull(RollCall.of(LIST, call.text()));
    assertThat(next.roll()).isEqualTo(call.roll());
    assertThat(next.roll()).isEqualTo(new Roll(3, List.of(lost(TWO, 2), never("node04"))));
    assertThat(next.look(List.of(ONE), List.of(), at(3))).isFalse();
  }

  @Test
  void text_thatIsMalformed_isNotBelieved() {
    String text = listed().text();
    Stream.of("", "2" + text.substring(1), "1\tx\n", text + "HERE\t1\n", text + "HERE\t1\tx\n")
        .forEach(wrong -> assertThat(RollCall.of(LIST, wrong)).as(wrong).isNull());
  }

  @Test
  void hostThatLostTwoNodes_hasTheLaterOneReplaced() {
    RollCall call = call();
    Member first = member("first", 7);
    Member second = member("second", 7);
    call.look(List.of(ONE, first, second), List.of(), at(1));
    call.look(List.of(ONE, second), List.of(), at(2));
    call.look(List.of(ONE), List.of(), at(3));
    call.look(List.of(ONE, member("third", 7)), List.of(), at(4));
    assertThat(call.roll()).isEqualTo(new Roll(3, List.of(lost(first, 2))));
  }

  @Test
  void members_areForgottenBeyondALimit() {
    RollCall call = call();
    List<Member> many =
        Stream.iterate(10, i -> i + 1)
            .limit(RollCall.MOST + 100L)
            .map(i -> member("many" + i, i))
            .toList();
    call.look(many, List.of(), at(1));
    call.look(List.of(ONE), List.of(), at(2));
    assertThat(call.roll().expected()).isEqualTo(RollCall.MOST);
  }
}
