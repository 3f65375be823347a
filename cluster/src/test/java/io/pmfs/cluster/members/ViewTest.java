package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class ViewTest {
  private final Random random = new Random(1);
  private final List<Member> members =
      IntStream.range(0, 100).mapToObj(i -> member(randomId(), 1)).toList();

  private UUID randomId() {
    return new UUID(random.nextLong(), random.nextLong());
  }

  private static Member member(UUID id, long instance) {
    return new Member(id, instance, "n", "127.0.0.1", 1);
  }

  @Test
  void find_eachMember_andNoOther() {
    View view = new View(members);
    for (Member member : members) {
      assertThat(view.find(member.id())).isEqualTo(member);
      assertThat(view.find(randomId())).isNull();
    }
    assertThat(new View(List.of()).find(randomId())).isNull();
  }

  @Test
  void find_ofRestartedMember_isItsLaterInstance() {
    UUID id = members.get(0).id();
    assertThat(new View(List.of(member(id, 2), member(id, 3), member(id, 1))).find(id))
        .isEqualTo(member(id, 3));
  }
}
