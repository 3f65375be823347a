package io.pmfs.stage.copies;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.Inode;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.LentFiles;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.file.Path;

/**
 * A whole copy in the tier of another mount, which may remove it at any time.
 *
 * @param tier the directory of the dataset in that tier
 * @param inode the file, as the other mount knows it
 * @param record what it recorded
 */
public record LentCopy(Path tier, Inode inode, CopyRecord record) {
  /**
   * Whether it is certainly a copy of that file: the other mount knows the file by the same number,
   * times and size.
   */
  public boolean isOf(FileIdentity identity, Attributes now) {
    return inode.isFile(identity, now) && inode.attributes().areUntouched(now);
  }

  /** Where it lies. */
  Tier.Lent file() {
    return new Tier.Lent(tier, inode.number(), record.extent(), record.storedSize());
  }

  /** Opens it; what is open stays readable. */
  public CopyReader open() throws IOException {
    return LentFiles.open(tier, inode.number(), record.extent());
  }
}
