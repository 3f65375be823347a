package io.pmfs.fuse;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fs.AccessLists;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.metadata.FileName;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AccessRuleTest {
  @TempDir private Path directory;

  private KernelFixture fixture;
  private AccessLists lists;

  @BeforeEach
  void open() throws Exception {
    fixture = new KernelFixture(directory);
    lists = fixture.fileSystem.accessLists();
  }

  @AfterEach
  void close() {
    fixture.close();
  }

  private KernelOperations operations(AccessRule rule) {
    return new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, rule);
  }

  /** The offered flags that a session with this rule accepts. */
  private long accepted(AccessRule rule, long offered) throws Exception {
    try (KernelSession session = new KernelSession(operations(rule))) {
      return session.ask(Opcode.INIT, 0, KernelMessages.init(7, 45, offered)).body().getInt(12);
    }
  }

  @Test
  void init_withLists_acceptsThemAndRecordsThat() throws Exception {
    long all = (1L << 30) - 1;
    assertThat(accepted(AccessRule.MODES, all) & KernelProtocol.POSIX_ACL).isZero();
    assertThat(accepted(AccessRule.LEAST_MODES, all) & KernelProtocol.POSIX_ACL).isZero();
    assertThat(accepted(AccessRule.LISTS, all & ~KernelProtocol.POSIX_ACL)).isNotZero();
    assertThat(lists.areAppliedByKernel()).isFalse();
    assertThat(accepted(AccessRule.LISTS, all) & KernelProtocol.POSIX_ACL).isNotZero();
    assertThat(lists.areAppliedByKernel()).isTrue();
  }

  @Test
  void of_resumedSession_isWhatTheKernelWasAskedFor() {
    assertThat(AccessRule.of(lists, true, true)).isEqualTo(AccessRule.LEAST_MODES);
    lists.applyByKernel();
    assertThat(AccessRule.of(lists, true, true)).isEqualTo(AccessRule.LISTS);
  }

  @Test
  void of_sourceWithoutLists_isModesOrLeastModes() {
    assertThat(AccessRule.of(lists, false, false)).isEqualTo(AccessRule.MODES);
    assertThat(AccessRule.of(lists, true, false)).isEqualTo(AccessRule.LEAST_MODES);
  }

  @Test
  void resume_kernelThatCannotResend_stillAppliesLists() {
    for (AccessRule rule : AccessRule.values()) {
      Negotiation negotiation = operations(rule).negotiation();
      negotiation.resume(false);
      assertThat(negotiation.appliesAccessLists()).isEqualTo(rule == AccessRule.LISTS);
      assertThat(negotiation.canResend()).isFalse();
    }
  }

  @Test
  void names_ofTrusted_areRootsAlone() {
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    for (String name : new String[] {"trusted.a", "user.trusted.b", "trusted", "security.c"}) {
      attributes.put(FileName.of(name), new byte[0]);
    }
    assertThat(new String(AccessRule.names(attributes, 0), UTF_8))
        .isEqualTo("trusted.a\0user.trusted.b\0trusted\0security.c\0");
    assertThat(new String(AccessRule.names(attributes, 1000), UTF_8))
        .isEqualTo("user.trusted.b\0trusted\0security.c\0");
  }
}
