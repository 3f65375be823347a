package io.pmfs.cli.status;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/** Whole percentages of parts that add up to 100. */
final class Percents {
  private static final double ALL = 100;

  private Percents() {}

  /** Rounds down, then rounds up those with the largest remainders. All are 0 if the sum is 0. */
  static List<Integer> of(List<Long> parts) {
    double whole = parts.stream().mapToDouble(Long::doubleValue).sum();
    List<Double> exact = parts.stream().map(part -> whole == 0 ? 0.0 : ALL * part / whole).toList();
    List<Integer> percents = new ArrayList<>(exact.stream().map(Double::intValue).toList());
    int missing = whole == 0 ? 0 : (int) ALL - percents.stream().mapToInt(Integer::intValue).sum();
    IntStream.range(0, parts.size())
        .boxed()
        .sorted(Comparator.comparing(i -> percents.get(i) - exact.get(i)))
        .limit(missing)
        .toList()
        .forEach(i -> percents.set(i, percents.get(i) + 1));
    return percents;
  }
}
