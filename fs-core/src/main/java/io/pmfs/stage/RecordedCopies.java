package io.pmfs.stage;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;
import java.util.function.Consumer;

/** The copies of one tier that a namespace has records of. */
record RecordedCopies(Namespace namespace, String tier) implements Tier.CopyRecords {
  @Override
  public boolean hasFile(long number) {
    return namespace.copies(number).stream()
        .anyMatch(copy -> isHere(copy) && copy.extent() == null);
  }

  @Override
  public void forEachExtent(Consumer<Extent> visitor) {
    namespace.listCopies(
        Namespace.ROOT,
        (number, copy) -> {
          Extent extent = copy.extent();
          if (isHere(copy) && extent != null) {
            visitor.accept(extent);
          }
          return true;
        });
  }

  private boolean isHere(CopyRecord copy) {
    return copy.tier().equals(tier);
  }
}
