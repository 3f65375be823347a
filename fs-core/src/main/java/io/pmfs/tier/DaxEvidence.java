package io.pmfs.tier;

import io.pmfs.posix.BlockDevice;
import io.pmfs.posix.MountedFileSystem;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Findings about the location of a pm tier, and the verdict that follows.
 *
 * @param mapSync whether a file there could be mapped with MAP_SYNC, which the kernel allows only
 *     on directly mapped persistent memory
 * @param attribute whether the kernel reports a file there as DAX; null if unknown
 * @param fileSystem its file system; null if unknown
 */
record DaxEvidence(
    boolean mapSync, @Nullable Boolean attribute, @Nullable MountedFileSystem fileSystem) {
  private static final Set<String> MEMORY = Set.of("tmpfs", "ramfs", "hugetlbfs");

  /** File systems on block devices that support DAX (Documentation/filesystems/dax.rst). */
  private static final Set<String> CAPABLE = Set.of("ext2", "ext4", "xfs");

  /** Whether it is persistent memory that applications can map themselves. */
  boolean isReal() {
    return mapSync;
  }

  /** Whether files are read and mapped in place, bypassing the page cache, whatever the storage. */
  boolean isDirect() {
    return mapSync || Boolean.TRUE.equals(attribute);
  }

  DaxVerdict verdict() {
    return new DaxVerdict(isReal(), isReal() ? proof() : objection());
  }

  private String proof() {
    if (fileSystem == null) {
      return "mapped with MAP_SYNC";
    }
    BlockDevice device = fileSystem.device();
    return fileSystem.description()
        + (device != null && device.isSetAside()
            ? ", memory set aside by memmap=, which is lost at power-off"
            : "");
  }

  private String objection() {
    if (isDirect()) {
      return "DAX, but without MAP_SYNC (" + lender() + ")";
    }
    if (fileSystem == null) {
      return "probably not DAX: MAP_SYNC is refused, and /proc/self/mountinfo does not"
          + " show the file system";
    }
    if (MEMORY.contains(fileSystem.type())) {
      return "emulated: " + fileSystem.type();
    }
    BlockDevice device = fileSystem.device();
    if (device == null) {
      return "not DAX: " + fileSystem.description();
    }
    Boolean offersDax = device.offersDax();
    if (offersDax == null) {
      return "not DAX: %s; /sys does not say whether it supports DAX"
          .formatted(fileSystem.description());
    }
    return offersDax ? onMemory(fileSystem) : withoutDax(fileSystem, device);
  }

  private String lender() {
    if (fileSystem == null) {
      return "unknown file system";
    }
    BlockDevice device = fileSystem.device();
    return device != null && device.isVirtio() ? "virtio-pmem" : fileSystem.description();
  }

  private static String withoutDax(MountedFileSystem place, BlockDevice device) {
    return device.isPmem()
        ? "not DAX: the namespace of /dev/%s is not in mode fsdax; create one with ndctl create-namespace --mode=fsdax"
            .formatted(device.name())
        : "not persistent memory: " + place.description();
  }

  private String onMemory(MountedFileSystem place) {
    if (!CAPABLE.contains(place.type())) {
      return "not DAX: %s does not support it; use ext4 or xfs".formatted(place.description());
    }
    String option = place.daxOption();
    if (option == null || (!option.equals("dax") && !option.equals("dax=always"))) {
      return "not DAX: %s mounted %s; mount it with -o dax=always"
          .formatted(place.description(), option == null ? "without dax" : "with " + option);
    }
    return attribute == null
        ? "not known to be DAX: %s mounted with %s refuses MAP_SYNC"
            .formatted(place.description(), option)
        : "not DAX: %s, although mounted with %s; see the kernel's log for the reason"
            .formatted(place.description(), option);
  }
}
