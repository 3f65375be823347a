import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * Counts what the XML reports of surefire and failsafe below a directory say, lists the skipped and failed tests, and ends
 * with 1 when one failed or none ran. Run as a source file: {@code java scripts/TestSummary.java .}
 */
final class TestSummary {
  private int passed;
  private final List<String> failed = new ArrayList<>();
  private final TreeMap<String, List<String>> skippedByReason = new TreeMap<>();

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
        skippedByReason.computeIfAbsent(reason((Element) skipped.item(0)), unused -> new ArrayList<>()).add(name);
      } else if (has(test, "failure") || has(test, "error")) {
        failed.add(name);
      } else {
        passed++;
      }
    }
  }

  /** An attribute, or else the first line of the stack trace, less the exception's name. */
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
    int skipped = 0;
    for (var entry : skippedByReason.entrySet()) {
      System.out.println("skipped: " + entry.getKey());
      entry.getValue().forEach(name -> System.out.println("  " + name));
      skipped += entry.getValue().size();
    }
    failed.forEach(name -> System.out.println("failed: " + name));
    if (passed + failed.size() + skipped == 0) {
      System.out.println("failed: no test ran");
    }
    System.out.printf("%d passed, %d failed, %d skipped%n", passed, failed.size(), skipped);
    return failed.isEmpty() && passed > 0 ? 0 : 1;
  }
}
