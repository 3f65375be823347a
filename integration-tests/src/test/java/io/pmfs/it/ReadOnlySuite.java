package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every system call that would change a tree, made on a read-only view of one. */
@TestInstance(Lifecycle.PER_CLASS)
abstract class ReadOnlySuite {
  final Scratch scratch = new Scratch();
  private Path source;
  private Path view;
  private String before;

  @BeforeAll
  void createTreeAndView() {
    source = scratch.directory("source");
    Mutation.createTree(source.toString());
    before = everything(source);
    view = lookAt(source);
  }

  abstract Path lookAt(Path source);

  abstract void lookAway();

  static List<Mutation> mutations() {
    return Mutation.all();
  }

  @ParameterizedTest
  @MethodSource("mutations")
  void mutation_failsAndLeavesTheSource(Mutation mutation) {
    long result = mutation.call().applyAsLong(view.toString());
    assertThat(Posix.outcome(result)).as(mutation.name()).isEqualTo(mutation.errno());
    assertThat(everything(source)).isEqualTo(before);
  }

  @Test
  void open_ofFifoForWriting_needsNoWritableMount() {
    int flags = Posix.O_RDWR | Posix.O_NONBLOCK;
    assertThat(Posix.outcome(Posix.withFile(view + "/fifo", flags, fd -> 0))).isEqualTo("ok");
  }

  /**
   * Names, types, modes, owners, sizes, times and attributes of a tree; contents follow from time.
   */
  private static String everything(Path tree) {
    return Command.run("find", tree.toString(), "-printf", "%P %y %m %U %G %n %s %T@ %C@ %l\\n")
        .expect(0)
        .out();
  }

  @AfterAll
  void removeTree() {
    try {
      lookAway();
    } finally {
      scratch.close();
    }
  }
}
