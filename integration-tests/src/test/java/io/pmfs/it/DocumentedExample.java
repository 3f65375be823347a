package io.pmfs.it;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A block of shell in a page: an indented one, or a fenced one of {@code sh}. Fenced blocks of
 * other languages are no commands.
 *
 * @param page the page, below the checkout
 * @param line the number of its first line
 * @param commands its lines; one that continues on the next line contains a line feed
 */
record DocumentedExample(String page, int line, List<String> commands) {
  private static final String BOTH = "";
  static final String USER = "ada";

  /** What a container cannot have, or should not: parts of lines, by page. */
  private static final List<LeftOut> EXCEPTIONS =
      List.of(
          // README
          except("README.md", BOTH, "scripts/package", "it built the packages that are used here"),
          except("README.md", BOTH, "#SBATCH", "needs Slurm; SlurmPrologueIT"),
          // Usage
          except("docs/usage.md", USER, "--linger 30m", "is for root"),
          except("docs/usage.md", USER, "the daemon stays", "is for root"),
          // Jobs
          except(
              "docs/slurm.md", BOTH, "pmfs run --private", "needs user namespaces; PrivateMountIT"),
          except(
              "docs/slurm.md", BOTH, ". /usr/lib/pmfs/slurm/user/", "needs Slurm; SlurmPrologueIT"),
          except("docs/slurm.md", BOTH, "srun ", "needs Slurm; SlurmPrologueIT"),
          except("docs/slurm.md", BOTH, "#SBATCH", "needs Slurm; SlurmPrologueIT"),
          except("docs/slurm.md", BOTH, "#PBS", "needs PBS"),
          except("docs/slurm.md", BOTH, "sort -u \"$PBS_NODEFILE\"", "needs PBS"),
          except("docs/slurm.md", BOTH, "pbsdsh ", "needs PBS"),
          except("docs/slurm.md", BOTH, "flux run ", "needs Flux"),
          except("docs/slurm.md", BOTH, "PMFS_SCHEDULER=pbs ", "needs PBS"),
          except("docs/slurm.md", BOTH, "PMFS_SCHEDULER=flux ", "needs Flux"),
          // Containers
          except("docs/containers.md", BOTH, "scripts/package", "it built the packages"),
          except("docs/containers.md", BOTH, "docker ", "needs an engine; ContainerImageIT"),
          except("docs/containers.md", BOTH, "kubectl ", "needs Kubernetes"),
          except("docs/containers.md", BOTH, "umount -l /var/lib/kubelet", "needs Kubernetes"),
          except("docs/containers.md", BOTH, "apptainer ", "needs Apptainer"),
          // The cache of a node
          except("docs/cache.md", USER, "useradd ", "is for root"),
          except("docs/cache.md", USER, "install -d ", "is for root"),
          except("docs/cache.md", BOTH, "systemctl ", "needs systemd as the first process"),
          except("docs/cache.md", BOTH, "/run/pmfs-cache/socket", "needs the service; NodeCacheIT"),
          // Clusters
          except(
              "docs/cluster.md",
              BOTH,
              "pmfs mount --writable --cluster",
              "needs other nodes; WritableNodesIT"),
          except("docs/cluster.md", BOTH, "pmfs mount --cluster", "needs other nodes; ClusterIT"),
          except("docs/cluster.md", BOTH, "srun ", "needs Slurm; SlurmPrologueIT"),
          except("docs/cluster.md", BOTH, "rm -r \"$HOME/.pmfs-$SLURM_JOB_ID\"", "needs Slurm"),
          // Persistent memory
          except("docs/pm.md", BOTH, "ndctl ", "needs persistent memory; FsdaxGuestIT"),
          except("docs/pm.md", BOTH, "mkfs.ext4 ", "needs persistent memory; FsdaxGuestIT"),
          except(
              "docs/pm.md", BOTH, "mount -o dax=always", "needs persistent memory; FsdaxGuestIT"),
          except("docs/pm.md", BOTH, "install -d ", "needs persistent memory; FsdaxGuestIT"),
          except("docs/pm.md", BOTH, "pmfs mount ", "needs persistent memory; FsdaxGuestIT"),
          // Installation
          except("docs/installation.md", BOTH, "git clone", "needs a network"),
          except("docs/installation.md", BOTH, "scripts/", "it builds the packages that are used"),
          except("docs/installation.md", BOTH, "sudo dnf", "needs RHEL"),
          except("docs/installation.md", USER, "sudo apt", "is for root"),
          except("docs/installation.md", BOTH, "systemctl ", "needs systemd as the first process"),
          // Metrics
          except("docs/metrics.md", USER, "curl --unix-socket /run/pmfs", "is a mount of root's"),
          // Operations
          except("docs/operations.md", USER, "pmfs upgrade", "is for mounts of root's"),
          // The pages' own tables
          except("docs/configuration.md", BOTH, "mvn ", "needs the sources and Maven"),
          except("docs/status.md", BOTH, "mvn ", "needs the sources and Maven"));

  /** A line of an example that does not run for one user or for both. */
  record LeftOut(String page, String user, String part, String reason) {
    private boolean isFor(String itsPage, String command) {
      return page.equals(itsPage) && command.contains(part);
    }
  }

  private static final Pattern PAGE = Pattern.compile("\\]\\(([a-z-]+\\.md)\\) \\|");

  private static LeftOut except(String page, String user, String part, String reason) {
    return new LeftOut(page, user, part, reason);
  }

  /** Only a JDK that is built for old systems makes a tar.gz with Java. */
  private static final LeftOut WITH_JAVA =
      except("docs/installation.md", BOTH, "~/opt", "no tar.gz with Java is built here");

  /**
   * The exceptions for a user.
   *
   * @param hasJava whether there is a tar.gz with Java
   */
  static List<LeftOut> exceptions(String user, boolean hasJava) {
    List<LeftOut> exceptions = new ArrayList<>();
    for (LeftOut exception : EXCEPTIONS) {
      if (exception.user().isEmpty() || exception.user().equals(user)) {
        exceptions.add(exception);
      }
    }
    if (!hasJava) {
      exceptions.add(WITH_JAVA);
    }
    return exceptions;
  }

  /** Of README and of the pages that docs/README.md lists for users and administrators. */
  static List<DocumentedExample> all(Path checkout) throws IOException {
    List<DocumentedExample> all = new ArrayList<>(of(checkout, "README.md"));
    boolean isForUsers = false;
    for (String line : Files.readAllLines(checkout.resolve("docs/README.md"))) {
      if (line.startsWith("## ")) {
        isForUsers = line.matches("## (Using|Operating) pmfs");
      }
      Matcher page = PAGE.matcher(line);
      if (isForUsers && page.find() && !page.group(1).equals("tutorial.md")) {
        all.addAll(of(checkout, "docs/" + page.group(1)));
      }
    }
    return all;
  }

  private static List<DocumentedExample> of(Path checkout, String page) throws IOException {
    List<DocumentedExample> examples = new ArrayList<>();
    List<String> block = null;
    String fence = null;
    boolean isAfterEmpty = true;
    boolean isContinued = false;
    int number = 0;
    for (String line : Files.readAllLines(checkout.resolve(page))) {
      number++;
      boolean isCode = fence == null && line.startsWith("    ") && (isAfterEmpty || block != null);
      isAfterEmpty = line.isBlank();
      if (line.startsWith("```")) {
        fence = fence == null ? line.substring(3).strip() : null;
        block = null;
      } else if (isCode || (fence != null && fence.equals("sh"))) {
        if (block == null) {
          block = new ArrayList<>();
          examples.add(new DocumentedExample(page, number, block));
          isContinued = false;
        }
        String text = isCode ? line.substring(4) : line;
        if (isContinued) {
          int last = block.size() - 1;
          block.set(last, block.get(last) + "\n" + text);
        } else if (!text.isBlank()) {
          block.add(text);
        }
        isContinued = text.endsWith("\\");
      } else if (!line.isBlank()) {
        block = null;
      }
    }
    return examples;
  }

  /**
   * The lines that run.
   *
   * @param exceptions those that apply to the user
   * @param unused loses the exceptions that are used here
   * @param leftOut gets the lines that do not run, with their reasons
   */
  List<String> linesToRun(List<LeftOut> exceptions, Set<LeftOut> unused, List<String> leftOut) {
    List<String> lines = new ArrayList<>();
    for (String command : commands) {
      LeftOut exception =
          exceptions.stream().filter(e -> e.isFor(page, command)).findFirst().orElse(null);
      if (exception == null) {
        lines.add(command);
      } else {
        unused.remove(exception);
        String first = command.lines().findFirst().orElse("").replaceAll(" {2,}#.*", "");
        leftOut.add("%s: %s: %s".formatted(this, first, exception.reason()));
      }
    }
    return lines;
  }

  @Override
  public String toString() {
    return page + ":" + line;
  }
}
