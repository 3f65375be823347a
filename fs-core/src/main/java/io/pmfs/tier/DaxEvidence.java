package io.pmfs.tier;

import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What was found out about the place of a pm tier, and what follows from it.
 *
 * @param mapSync whether a file there was mapped with MAP_SYNC, which the kernel refuses on all but
 *     persistent memory that is mapped directly
 * @param attribute whether the kernel says that a file there is DAX; null if it does not say
 * @param fileSystem what it lies on; null if that is not known
 */
record DaxEvidence(
    boolean mapSync, @Nullable Boolean attribute, @Nullable MountedFileSystem fileSystem) {
  private static final Set<String> MEMORY = Set.of("tmpfs", "ramfs", "hugetlbfs");

  /** Those on block devices that know DAX (Documentation/filesystems/dax.rst). */
  private static final Set<String> CAPABLE = Set.of("ext2", "ext4", "xfs");

  /** Whether it is persistent memory that applications map themselves. */
  boolean isReal() {
    return mapSync;
  }

  /** Whether files are read and mapped where they lie, past the page cache, whatever holds them. */
  boolean isDirect() {
    return mapSync || Boolean.TRUE.equals(attribute);
  }

  TierStatus.Dax verdict() {
    return new TierStatus.Dax(isReal(), isReal() ? proof() : objection());
  }

  private String proof() {
    if (fileSystem == null) {
      return "mapped with MAP_SYNC";
    }
    BlockDevice device = fileSystem.device();
    return fileSystem.description()
        + (device != null && device.isSetAside()
            ? ", memory set aside by memmap=, which loses all at power-off"
            : "");
  }

  private String objection() {
    if (isDirect()) {
      return "DAX, but without MAP_SYNC (" + lender() + ")";
    }
    if (fileSystem == null) {
      return "not DAX as far as is known: MAP_SYNC is refused, and /proc/self/mountinfo does not"
          + " tell the file system";
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
      return "not DAX: %s, of which /sys does not say whether it could be"
          .formatted(fileSystem.description());
    }
    return offersDax ? onMemory(fileSystem) : withoutDax(fileSystem, device);
  }

  private String lender() {
    if (fileSystem == null) {
      return "on what is not known";
    }
    BlockDevice device = fileSystem.device();
    return device != null && device.isVirtio() ? "virtio-pmem" : fileSystem.description();
  }

  private static String withoutDax(MountedFileSystem place, BlockDevice device) {
    return device.isPmem()
        ? "not DAX: the namespace of /dev/%s is not in mode fsdax; ndctl create-namespace --mode=fsdax makes one"
            .formatted(device.name())
        : "not persistent memory: " + place.description();
  }

  private String onMemory(MountedFileSystem place) {
    if (!CAPABLE.contains(place.type())) {
      return "not DAX: %s does not know it; make ext4 or xfs".formatted(place.description());
    }
    String option = place.daxOption();
    if (option == null || (!option.equals("dax") && !option.equals("dax=always"))) {
      return "not DAX: %s mounted %s; mount it with -o dax=always"
          .formatted(place.description(), option == null ? "without dax" : "with " + option);
    }
    return attribute == null
        ? "not known to be DAX: %s mounted with %s refuses MAP_SYNC"
            .formatted(place.description(), option)
        : "not DAX: %s though mounted with %s; the kernel's log says why"
            .formatted(place.description(), option);
  }
}
