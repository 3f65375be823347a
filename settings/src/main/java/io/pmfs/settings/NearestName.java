package io.pmfs.settings;

import java.util.Collection;
import org.jspecify.annotations.Nullable;

/** Finds the known name that a mistyped name most likely means. */
public final class NearestName {
  private NearestName() {}

  /** The known name with the fewest edits, or null if none is close. */
  public static @Nullable String to(String mistyped, Collection<String> known) {
    String best = null;
    int bestDistance = Math.max(2, mistyped.length() / 2);
    for (String candidate : known) {
      int distance = distance(mistyped, candidate);
      if (distance < bestDistance || (distance == bestDistance && best == null)) {
        best = candidate;
        bestDistance = distance;
      }
    }
    return best;
  }

  /** Whether the name is surely meant for that one. */
  static boolean isMeantFor(String mistyped, String known) {
    return distance(mistyped, known) <= 2;
  }

  /** The Levenshtein distance: insertions, deletions and substitutions. */
  static int distance(String from, String to) {
    int[] row = new int[to.length() + 1];
    for (int j = 0; j <= to.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= from.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= to.length(); j++) {
        int substituted = diagonal + (from.charAt(i - 1) == to.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(substituted, Math.min(row[j], row[j - 1]) + 1);
      }
    }
    return row[to.length()];
  }
}
