package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class RememberedDiskTest {
  private long free = 100;
  private boolean fails;
  private final List<Runnable> hanging = new ArrayList<>();

  private long ask() throws IOException {
    if (fails) {
      throw new IOException("Input/output error");
    }
    return free;
  }

  @Test
  void recentlyUsableBytes_ofADiskThatAnswers_isTheRoomNow() throws Exception {
    RememberedDisk disk = new RememberedDisk(this::ask, Runnable::run);
    free = 7;

    assertThat(disk.recentlyUsableBytes()).isEqualTo(7);
  }

  @Test
  void recentlyUsableBytes_ofADiskThatHangs_isTheLastAnswerAndAsksOnce() throws Exception {
    RememberedDisk disk = new RememberedDisk(this::ask, hanging::add);
    free = 7;

    assertThat(disk.recentlyUsableBytes()).isEqualTo(100);
    assertThat(disk.recentlyUsableBytes()).isEqualTo(100);
    assertThat(hanging).hasSize(1);

    hanging.remove(0).run();
    assertThat(disk.usableBytes()).isEqualTo(7);
    free = 5;
    assertThat(disk.recentlyUsableBytes()).isEqualTo(7);
    assertThat(hanging).as("asks again after an answer").hasSize(1);
  }

  @Test
  void recentlyUsableBytes_ofADiskThatFails_isTheLastAnswer() throws Exception {
    RememberedDisk disk = new RememberedDisk(this::ask, Runnable::run);
    fails = true;

    assertThat(disk.recentlyUsableBytes()).isEqualTo(100);
  }

  @Test
  void available_isWhatBothCapacityAndDiskHave() throws Exception {
    Room room = new Room(1 << 20, 10_000, Room.Disk.OWN);
    room.reserve(4096);
    room.settle(4096);

    assertThat(room.available(Long.MAX_VALUE)).isEqualTo((1 << 20) - 4096);
    assertThat(room.available(30_000)).as("beyond what stays free").isEqualTo(20_000);
    assertThat(room.available(9_000)).isZero();
    room.reserve(8192);
    assertThat(room.available(30_000)).as("reserved bytes are gone").isEqualTo(20_000 - 8192);
    room.found(1 << 20);
    assertThat(room.available(Long.MAX_VALUE)).as("more than the capacity").isZero();
  }
}
