package io.pmfs.cli.doctor;

import io.pmfs.settings.ByteSize;
import io.pmfs.settings.Capacity;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.DefaultTier;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountProbe;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.PoolPlace;
import io.pmfs.settings.Reason;
import io.pmfs.settings.TierSpec;
import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Looks over what one mount needs, as it is configured, for {@code pmfs doctor}. */
final class MountExamination {
  private final MountSettings settings;
  private final List<Finding> findings = new ArrayList<>();

  MountExamination(MountSettings settings) {
    this.settings = settings;
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
    if (state == null) {
      add(Finding.Grade.FAIL, "state", "no tier is on a local disk; give a place with --state-dir");
    } else {
      room("state", state, settings.copies().keepFree());
    }
    return findings;
  }

  private void source() {
    Path source = settings.source().path();
    String wrong =
        switch (MountProbe.of(source)) {
          case ANSWERS -> null;
          case ABSENT -> "not there; check the path, and that its file system is mounted";
          case DENIED -> "permission denied; ask its owner for access";
          case STALE, BROKEN, HUNG -> "does not answer; check that its file system is mounted";
        };
    add(
        wrong == null ? Finding.Grade.OK : Finding.Grade.FAIL,
        "source",
        source + ": " + (wrong == null ? "answers" : wrong));
  }

  private void tier(TierSpec tier) {
    String subject = "tier " + tier.kind();
    if (PoolPlace.isPool(tier)) {
      try {
        PoolPlace.check(tier);
        add(Finding.Grade.OK, subject, tier.path() + ": a pool");
      } catch (MountFailure e) {
        add(Finding.Grade.FAIL, subject, e.line());
      }
    } else {
      room(subject, tier.path(), settings.copies().keepFree());
    }
  }

  private void room(String subject, Path path, Capacity keepFree) {
    Path existing = DefaultTier.nearestExisting(path);
    try {
      FileStore disk = Files.getFileStore(existing);
      long all = disk.getTotalSpace();
      long free = disk.getUsableSpace();
      String text =
          "%s: %s of %s free".formatted(path, ByteSize.format(free), ByteSize.format(all));
      if (!Files.isWritable(existing)) {
        add(Finding.Grade.FAIL, subject, path + ": cannot be written; choose another place");
      } else if (free <= keepFree.on(all)) {
        add(
            Finding.Grade.WARN,
            subject,
            "%s, and --keep-free %s leaves none for new copies: make room, or choose another place"
                .formatted(text, keepFree));
      } else {
        add(Finding.Grade.OK, subject, text);
      }
    } catch (IOException e) {
      add(Finding.Grade.FAIL, subject, path + ": " + Reason.of(e) + "; choose another place");
    }
  }

  private void add(Finding.Grade grade, String subject, String text) {
    findings.add(new Finding(grade, subject, text));
  }
}
