package io.pmfs.it;

import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * The tests of {@link SharedFileSystemIT} on the kernel's NFS, in a virtual machine that has it.
 */
final class NfsGuestIT {
  private static final Duration LIMIT = Duration.ofMinutes(45);

  @Test
  @OnRequest(value = "vm", what = "the kernel's NFS in a virtual machine")
  void guest_withKernelNfs_passesItsTests() {
    // The guest has this machine's programs: what is missing is missing here.
    SharedFileSystem.require(SharedFileSystem.Kind.KERNEL_NFS4);
    Guest.run(
        "nfs",
        LIMIT,
        List.of("--nfs"),
        List.of("-Dpmfs.shared=all"),
        List.of("--select-class=" + SharedFileSystemIT.class.getName()));
  }
}
