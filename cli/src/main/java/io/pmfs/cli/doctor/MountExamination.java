package io.pmfs.cli.doctor;

import io.pmfs.daemon.dataset.MountPlaces;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.MountProbe;
import io.pmfs.places.Capacity;
import io.pmfs.places.OwnDirectory;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierPlace;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.MountSettings;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Checks source, tiers and cluster of one mount's settings for {@code pmfs doctor}. */
final class MountExamination {
  private final MountSettings settings;
  private final Surroundings surroundings;

  /** What a tier or a state that cannot be used means. */
  private final Finding.Grade unusable;

  private final List<Finding> findings = new ArrayList<>();

  private MountExamination(
      MountSettings settings, Surroundings surroundings, Finding.Grade unusable) {
    this.settings = settings;
    this.surroundings = surroundings;
    this.unusable = unusable;
  }

  /** Nothing is mounted with these settings. */
  static List<Finding> beforeMounting(MountSettings settings, Surroundings surroundings) {
    return new MountExamination(settings, surroundings, Finding.Grade.FAIL).run();
  }

  /**
   * A mount that goes on without a tier or its state, with what its daemon says of the tiers, in
   * their order.
   */
  static List<Finding> ofMount(
      MountSettings settings, Surroundings surroundings, List<TierReport> reports) {
    MountExamination examination = new MountExamination(settings, surroundings, Finding.Grade.PART);
    examination.places(reports);
    return examination.findings;
  }

  private List<Finding> run() {
    places(List.of());
    ClusterOptions cluster = settings.cluster();
    if (cluster != null) {
      findings.addAll(new ClusterExamination(cluster).run());
    }
    return findings;
  }

  /** Source, tiers and state. */
  private void places(List<TierReport> reports) {
    source();
    List<TierSpec> tiers = settings.copies().tiers();
    for (int i = 0; i < tiers.size(); i++) {
      if (i < reports.size() && !reports.get(i).state().equals("on")) {
        limited(reports.get(i));
      } else {
        tier(tiers.get(i));
      }
    }
    Path state = settings.metadata().stateDirectory();
    try {
      new MountPlaces(settings, surroundings).check();
    } catch (MountFailure e) {
      add(unusable, "places", e.line());
    }
    if (state == null) {
      add(Finding.Grade.FAIL, "state", "no tier is on a local disk; give a place with --state-dir");
    } else {
      examine("state", new OwnDirectory(state, "state")::examine);
    }
  }

  /** A tier of which the daemon says that it is not on. */
  private void limited(TierReport tier) {
    add(
        tier.isUp() ? Finding.Grade.WARN : Finding.Grade.PART,
        "tier " + tier.kind(),
        tier.isUp()
            ? "%s: accepts no new copies for now: %s".formatted(tier.path(), tier.reason())
            : "%s: turned off until the next mount: %s; reads use the next tier or the source"
                .formatted(tier.path(), tier.reason()));
  }

  private void source() {
    Path source = settings.source().path();
    String wrong =
        switch (MountProbe.of(source)) {
          case ANSWERS -> null;
          case ABSENT -> "missing; check the path, and that its file system is mounted";
          case DENIED -> "permission denied; ask its owner for access";
          case STALE, BROKEN, HUNG -> "does not answer; check that its file system is mounted";
        };
    add(
        wrong == null ? Finding.Grade.OK : Finding.Grade.FAIL,
        "source",
        source + ": " + (wrong == null ? "answers" : wrong));
  }

  private void tier(TierSpec tier) {
    examine(tier.what(), tier.place()::examine);
  }

  /** Checks the place of a tier, or a directory. */
  private interface Examined {
    TierPlace.Examined examine(Capacity keepFree) throws MountFailure;
  }

  private void examine(String subject, Examined place) {
    try {
      TierPlace.Examined found = place.examine(settings.copies().keepFree());
      add(found.takesCopies() ? Finding.Grade.OK : Finding.Grade.WARN, subject, found.text());
    } catch (MountFailure e) {
      add(unusable, subject, e.line());
    }
  }

  private void add(Finding.Grade grade, String subject, String text) {
    findings.add(new Finding(grade, subject, text));
  }
}
