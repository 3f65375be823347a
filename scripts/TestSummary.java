import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * Sums up the XML reports of surefire and failsafe below a directory. Lists the tests that were skipped, failed, passed
 * only when repeated or were left out on purpose; the last line has the counts. Exits with 1 when a test failed or none
 * ran. Run as a source file: {@code java scripts/TestSummary.java .}
 */
final class TestSummary {
  /** The reason of a test that was left out: it could run here, but only a Maven property requests it. */
  private static final Pattern LEFT_OUT = Pattern.compile("-Dpmfs\\.\\w+=all");

  private int passed;
  private final List<String> failed = new ArrayList<>();
  private final List<String> unsteady = new ArrayList<>();
  private final Map<String, List<String>> skippedByReason = new TreeMap<>();
  private final Map<String, List<String>> leftOutByReason = new TreeMap<>();

  public static void main(String[] args) throws Exception {
    TestSummary summary = new TestSummary();
    DocumentBuilder parser = DocumentBuilderFactory.newInstance().newDocumentBuilder();
    for (Path report : reports(Path.of(args[0]))) {
      summary.add(parser.parse(report.toFile()));
    }
    System.exit(summary.print());
  }

  private static List<Path> reports(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(TestSummary::isReport).sorted().toList();
    }
  }

  private static boolean isReport(Path path) {
    String name = path.getFileName().toString();
    return name.startsWith("TEST-")
        && name.endsWith(".xml")
        && path.getParent().getFileName().toString().matches("(surefire|failsafe)-reports");
  }

  private void add(Document report) {
    NodeList tests = report.getElementsByTagName("testcase");
    for (int index = 0; index < tests.getLength(); index++) {
      Element test = (Element) tests.item(index);
      String className = test.getAttribute("classname");
      String name = className.substring(className.lastIndexOf('.') + 1) + "." + test.getAttribute("name");
      NodeList skipped = test.getElementsByTagName("skipped");
      if (skipped.getLength() > 0) {
        String reason = reason((Element) skipped.item(0));
        boolean isLeftOut = LEFT_OUT.matcher(reason).find();
        (isLeftOut ? leftOutByReason : skippedByReason).computeIfAbsent(reason, unused -> new ArrayList<>()).add(name);
      } else if (has(test, "failure") || has(test, "error")) {
        failed.add(name);
      } else {
        passed++;
        if (has(test, "flakyFailure") || has(test, "flakyError")) {
          unsteady.add(name);
        }
      }
    }
  }

  /** The attribute, or else the first line of the stack trace without the exception's name. */
  private static String reason(Element skipped) {
    String message = skipped.getAttribute("message");
    String text = message.isBlank() ? skipped.getTextContent() : message;
    String line = text.strip().lines().findFirst().orElse("");
    String reason = line.replaceFirst("^[\\w.$]+Exception: ", "").replaceFirst("^Assumption failed: ", "");
    return reason.isBlank() ? "no reason given" : reason;
  }

  private static boolean has(Element test, String child) {
    return test.getElementsByTagName(child).getLength() > 0;
  }

  private int print() {
    leftOutByReason.forEach((reason, names) -> System.out.println("left out: " + reason + ": " + classes(names)));
    skippedByReason.forEach(
        (reason, names) -> {
          System.out.println("skipped: " + reason);
          names.forEach(name -> System.out.println("  " + name));
        });
    unsteady.forEach(name -> System.out.println("failed once, passed when repeated: " + name));
    failed.forEach(name -> System.out.println("failed: " + name));
    int skipped = count(skippedByReason);
    if (passed + failed.size() + skipped == 0) {
      System.out.println("failed: no test ran");
    }
    int leftOut = count(leftOutByReason);
    System.out.printf(
        "%,d passed%s, %d failed, %d skipped%s%n",
        passed,
        unsteady.isEmpty() ? "" : " (%d only when repeated)".formatted(unsteady.size()),
        failed.size(),
        skipped,
        leftOut == 0 ? "" : ", %d left out".formatted(leftOut));
    return failed.isEmpty() && passed > 0 ? 0 : 1;
  }

  private static int count(Map<String, List<String>> byReason) {
    return byReason.values().stream().mapToInt(List::size).sum();
  }

  /** The classes, each with the number of its tests; a class that is left out as a whole counts as one. */
  private static String classes(List<String> names) {
    Map<String, Integer> counts = new TreeMap<>();
    names.forEach(name -> counts.merge(name.replaceFirst("[.\\[].*", ""), 1, Integer::sum));
    return counts.entrySet().stream().map(e -> e.getKey() + " " + e.getValue()).collect(Collectors.joining(", "));
  }
}
