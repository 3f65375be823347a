package io.pmfs.cli.doctor;

import io.pmfs.daemon.dataset.MountPlaces;
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
  private final List<Finding> findings = new ArrayList<>();

  MountExamination(MountSettings settings, Surroundings surroundings) {
    this.settings = settings;
    this.surroundings = surroundings;
  }

  List<Finding> run() {
    places();
    ClusterOptions cluster = settings.cluster();
    if (cluster != null) {
      findings.addAll(new ClusterExamination(cluster).run());
    }
    return findings;
  }

  /** Source, tiers and state. */
  List<Finding> places() {
    source();
    settings.copies().tiers().forEach(this::tier);
    Path state = settings.metadata().stateDirectory();
    try {
      new MountPlaces(settings, surroundings).check();
    } catch (MountFailure e) {
      add(Finding.Grade.FAIL, "places", e.line());
    }
    if (state == null) {
      add(Finding.Grade.FAIL, "state", "no tier is on a local disk; give a place with --state-dir");
    } else {
      examine("state", new OwnDirectory(state, "state")::examine);
    }
    return findings;
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
      add(Finding.Grade.FAIL, subject, e.line());
    }
  }

  private void add(Finding.Grade grade, String subject, String text) {
    findings.add(new Finding(grade, subject, text));
  }
}
