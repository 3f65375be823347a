package io.pmfs.cli.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cli.TestWorld;
import io.pmfs.daemon.dataset.TransientCopies;
import io.pmfs.machine.ExitStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class RunCommandTest {
  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
    world.makeDirectory("src");
    world.makeDirectory("mnt");
    world.environment.put(RunCommand.PLAN, "1");
  }

  private String place(String name) {
    return world.directory.resolve(name).toString();
  }

  private List<String> plan(String... arguments) {
    assertThat(world.execute(arguments)).as("%s", world.errors()).isZero();
    String text = world.output();
    assertThat(text).endsWith("end\0");
    return List.of(text.substring(0, text.length() - 1).split("\0", -1));
  }

  @Test
  void run_options_becomeAPlanAndAMount() {
    List<String> plan =
        plan(
            "run",
            "--source=src",
            "--mountpoint=mnt",
            "--stage",
            "--stage=a b",
            "--purge",
            "--grace=2m",
            "--idle-timeout=1h",
            "--tier=ssd:" + place("tier"),
            "--no-allow-other",
            "--",
            "COMMAND",
            "--tier");

    assertThat(plan)
        .startsWith(place("src"), place("mnt"))
        .containsSubsequence("false", "false", "120", "3600", "2", ".", "a b")
        .endsWith(
            "--tier=ssd:" + place("tier"),
            "--no-allow-other",
            "--",
            place("src"),
            place("mnt"),
            "end");
  }

  @Test
  void run_withCopiesOfItsOwn_putsThemBelowEachTier() {
    world.environment.put(RunCommand.COPIES, "3");

    List<String> plan =
        plan(
            "run",
            "--source=src",
            "--mountpoint=mnt",
            "--tier=ssd:" + place("t") + ":5%",
            "--",
            "COMMAND");

    assertThat(plan)
        .contains(
            "--tier=ssd:" + place("t/run-3") + ":5%", "--state-dir=" + place("t/state/run-3"));
  }

  @ParameterizedTest
  @CsvSource({
    "run --source src python3 train.py --source x -- y, 6",
    "run --source=src --purge --tier ssd:t sh -c true, 3",
    "run true, 1",
    "run -- --odd x, 2"
  })
  void run_words_areThoseBehindTheOptions(String line, String count) {
    world.environment.put(RunCommand.WORDS, "1");

    assertThat(world.execute(line.split(" "))).as("%s", world.errors()).isZero();

    assertThat(world.output()).isEqualTo(count);
  }

  @Test
  void run_wordBeforeTheDashes_isRefused() {
    assertThat(world.execute("run", "--source=src", "sh", "--", "COMMAND"))
        .isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).startsWith("pmfs: run: 'sh' stands before --");
  }

  @Test
  void run_forAnotherUser_isRefused() {
    assertThat(
            world.execute("run", "--source=src", "--mountpoint=mnt", "--user=ada", "--", "COMMAND"))
        .isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).startsWith("pmfs: --user: does not work with run");
  }

  @Test
  void run_withTooLongAGrace_isRefused() {
    assertThat(
            world.execute("run", "--source=src", "--mountpoint=mnt", "--grace=2h", "--", "COMMAND"))
        .isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).startsWith("pmfs: --grace: '2h' is more than an hour");
  }

  @Test
  void transientCopies_ofANewState_areMarkedForTheNextMountAsWell() throws IOException {
    Path state = temporary.resolve("state");
    world.environment.put(TransientCopies.VARIABLE, "1");
    TransientCopies first = TransientCopies.before(state, world.surroundings(), false);
    Files.createDirectory(state);
    first.mark();
    assertThat(TransientCopies.areIn(state)).isTrue();

    TransientCopies.before(state, world.surroundings(), false).mark();
    assertThat(TransientCopies.areIn(state)).isTrue();
    world.environment.remove(TransientCopies.VARIABLE);
    TransientCopies.before(state, world.surroundings(), true).mark();
    assertThat(TransientCopies.areIn(state)).isTrue();
    TransientCopies.before(state, world.surroundings(), false).mark();
    assertThat(TransientCopies.areIn(state)).isFalse();
  }

  @Test
  void transientCopies_thatAMountWithoutPurgeShares_stay() throws IOException {
    Path state = temporary.resolve("state");
    world.environment.put(TransientCopies.VARIABLE, "1");
    TransientCopies first = TransientCopies.before(state, world.surroundings(), false);
    Files.createDirectory(state);
    first.mark();

    assertThat(TransientCopies.join(state, world.surroundings())).isTrue();
    assertThat(TransientCopies.areIn(state)).isTrue();
    world.environment.remove(TransientCopies.VARIABLE);
    assertThat(TransientCopies.join(state, world.surroundings())).isTrue();
    assertThat(TransientCopies.areIn(state)).isFalse();
    world.environment.put(TransientCopies.VARIABLE, "1");
    assertThat(TransientCopies.join(state, world.surroundings())).isFalse();
    assertThat(TransientCopies.areIn(state)).isFalse();
  }

  @Test
  void transientCopies_ofAStateThatWasThere_stay() throws IOException {
    Path state = Files.createDirectory(temporary.resolve("state"));
    world.environment.put(TransientCopies.VARIABLE, "1");
    TransientCopies.before(state, world.surroundings(), false).mark();
    assertThat(TransientCopies.areIn(state)).isFalse();
  }
}
